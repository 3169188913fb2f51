import { readFileSync } from 'node:fs'
import type { Page } from 'puppeteer-core'
import { test, type Test } from 'tap'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { SessionServer } from '../support/client/session-server.ts'
import { until } from '../support/time/until.ts'
import { WITHIN_A_SECOND, within } from '../support/time/within.ts'

const TABS = 20

/** A page that follows the session. */
const PAGE = `<!doctype html><title>page</title>
  <script type="module">
    import { createClient } from '/client.js'
    globalThis.faults = []
    addEventListener('error', ({ message }) => faults.push(message))
    addEventListener('unhandledrejection', ({ reason }) => faults.push(String(reason)))
    addEventListener('pageshow', ({ persisted }) => (globalThis.isRestored = persisted))
    globalThis.client = createClient()
    client.session.subscribe(() => (globalThis.changedAt = Date.now()))
  </script>`

function sessionServer(t: Test): Promise<SessionServer> {
  const other = '<!doctype html><title>other</title>'
  const client = readFileSync(new URL('../../client/dist/client.js', import.meta.url), 'utf8')
  const files = { '/': PAGE, '/other.html': other, '/auth/signup': other, '/client.js': client }
  return SessionServer.start(t, { files })
}

/** The value of an expression; undefined while the page navigates. */
function read(page: Page, expression: string): Promise<unknown> {
  return page.evaluate(expression).catch(() => undefined)
}

async function allAre(pages: readonly Page[], status: string): Promise<void> {
  for (const page of pages) {
    await until(async () => (await read(page, 'globalThis.client?.session.get().status')) === status, status)
  }
}

async function leave(page: Page, path: string): Promise<void> {
  await page.evaluate(`void (location.href = '${path}')`)
  await until(async () => (await read(page, 'location.pathname')) === path)
}

async function goBack(page: Page): Promise<void> {
  await page.evaluate('history.back()')
  await until(async () => (await read(page, 'location.pathname')) === '/')
}

for (const name of browsersOr('firefox')) {
  await test(`${name}: ${TABS} tabs share one session socket, and learn of a logout and a login${WITHIN_A_SECOND}`, async (t) => {
    const server = await sessionServer(t)
    const window = await testWindow(t, name)
    const pages = await Promise.all(Array.from({ length: TABS }, () => window.newPage()))
    for (const page of pages) await page.goto(server.url)
    await allAre(pages, 'active')
    await until(() => server.open === 1)
    t.equal(server.handshakes, 1)
    const delays = (startedAt: number): Promise<number[]> =>
      Promise.all(pages.map(async (page) => Number(await page.evaluate('changedAt')) - startedAt))
    for (let round = 0; round < 2; round++) {
      const clickedAt = Number(await pages[3]?.evaluate('((at) => client.logout().then(() => at))(Date.now())'))
      await allAre(pages, 'anonymous')
      within(t, Math.max(...(await delays(clickedAt))), 1000, 'until every tab knows of the logout')
      // A reload stands for a user who logs in in one tab and returns to it.
      server.isLoggedIn = true
      const reloadedAt = Date.now()
      await pages[1]?.reload()
      await allAre(pages, 'active')
      t.ok(Math.min(...(await delays(reloadedAt))) > 0, 'no tab has to be reloaded')
      await until(() => server.open === 1)
    }
    await pages.shift()?.close()
    await until(() => server.open === 1)
    server.isLoggedIn = false
    server.end('revoked')
    await allAre(pages, 'anonymous')
    for (const page of pages) t.same(await page.evaluate('faults'), [])
  })

  await test(`${name}: a page that leaves hands the session socket over, and a page that is restored checks the session`, async (t) => {
    const server = await sessionServer(t)
    const window = await testWindow(t, name)
    const [leader, other] = await Promise.all([window.newPage(), window.newPage()])
    await leader.goto(server.url)
    await allAre([leader], 'active')
    await other.goto(server.url)
    await allAre([other], 'active')
    await until(() => server.open === 1)

    await leave(other, '/other.html')
    server.isLoggedIn = false
    server.end('logout')
    await allAre([leader], 'anonymous')
    await goBack(other)
    // Firefox does not keep a page that waits for a lock or has a WebSocket, so it loads the page again.
    await until(async () => (await read(other, 'isRestored')) === (name === 'chrome'))
    await allAre([other], 'anonymous')

    server.isLoggedIn = true
    await other.evaluate('client.session.check()')
    await allAre([leader], 'active')
    await until(() => server.open === 1)
    await leave(leader, '/other.html')
    await until(() => server.handshakes === 3 && server.open === 1)
    await goBack(leader)
    await allAre([leader, other], 'active')
    await until(async () => (await read(leader, 'isRestored')) === (name === 'chrome'))
    t.same([server.open, server.handshakes], [1, 3])
    for (const page of [leader, other]) t.same(await page.evaluate('faults'), [])
  })
}

await test('takeAuthError(), extend() and signup() in a page', async (t) => {
  const server = await sessionServer(t)
  const page = await (await testWindow(t, 'chrome')).newPage()
  await page.goto(`${server.url}/?auth_error=access_denied&flow=signup&return_to=%2Fchart%3Fsymbol%3DR_100`)
  await allAre([page], 'active')
  t.equal(await page.evaluate('client.session.loginUrl()'), '/auth/login?return_to=%2F', 'not back to the error')
  t.same(await page.evaluate('client.session.takeAuthError()'), {
    code: 'access_denied',
    flow: 'signup',
    againUrl: '/auth/signup?return_to=%2Fchart%3Fsymbol%3DR_100',
    loginUrl: '/auth/login?return_to=%2Fchart%3Fsymbol%3DR_100',
  })
  t.equal(page.url(), `${server.url}/`)
  t.equal(await page.evaluate('client.session.takeAuthError()'), undefined)
  await page.evaluate(`history.pushState(null, '', '/.//shop/?auth_error=login_failed#c')`)
  t.match(await page.evaluate('client.session.takeAuthError()'), { code: 'login_failed' })
  t.equal(page.url(), `${server.url}//shop/`, 'anyone can make a link to such a path')
  await page.evaluate('client.session.extend()')
  t.equal(server.extended, 1)
  await page.goto(`${server.url}/?logged_out=provider`)
  t.equal(await page.evaluate('client.session.loginUrl()'), '/auth/login?return_to=%2F', 'nor to the logout')
  await page.goto(`${server.url}/?a=b#c`)
  await page.evaluate(`client.signup({ partner: { sidc: '1', utm_medium: 'affiliate' } })`)
  await until(() => page.url().includes('/auth/'))
  t.equal(page.url(), `${server.url}/auth/signup?return_to=%2F%3Fa%3Db%23c&sidc=1&utm_medium=affiliate`)
})
