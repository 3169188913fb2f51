import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'puppeteer-core'
import { test, type Test } from 'tap'
import { browsersOr, logInBy, testWindow, type BrowserName } from '../support/browser/browsers.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { documentedSample } from '../support/browser/documented-samples.ts'
import { bundled, examplePage } from '../support/browser/example-page.ts'
import { TradingService } from '../support/client/trading-service.ts'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { startWorld } from '../support/world.ts'

const ACCOUNTS = { data: [{ account_id: 'VRTC100', balance: 1000 }] }
const OTHER = '<!doctype html><title>other</title><p>Another page</p>'
const LOG_OUT = `fetch('/auth/logout', { method: 'POST', headers: { 'X-CSRF': '1' } }).then(({ status }) => status)`

/** Notes what becomes of the sockets of a page, each of which asks for the time when it opens. */
const WATCH_SOCKETS = `{
  const { WebSocket } = globalThis
  globalThis.sockets = []
  globalThis.events = []
  globalThis.WebSocket = class extends WebSocket {
    constructor(...options) {
      super(...options)
      sockets.push(this)
      this.addEventListener('open', () => this.send('{"time":1,"req_id":1}'))
      this.addEventListener('message', ({ data }) => events.push('answer ' + JSON.parse(data).req_id))
      this.addEventListener('close', ({ code, reason }) => events.push(('end ' + code + ' ' + reason).trim()))
    }
  }
}`

/** Notes whether the browser has kept the page, and whether the page hides itself then. */
const WATCH_RETURN = `addEventListener('pageshow', ({ persisted }) => {
  globalThis.isRestored = persisted
  sessionStorage.wasHidden = document.documentElement.hidden
})`

/** Pages with the package, an element that they show to a user who is logged in, and one that they show to any other. */
const PACKAGE_PAGES = [
  ['example page', async (t: Test) => bundled(await examplePage(t)), '#logout', '#login'],
  ['demo page', async () => DEMO_PAGE, '[data-testid=logout]', '[data-testid=session-state][data-state=anonymous]'],
] as const

/** The value of an expression; undefined while the page navigates. */
function read(page: Page, expression: string): Promise<unknown> {
  return page.evaluate(expression).catch(() => undefined)
}

async function shows(page: Page, text: string): Promise<void> {
  await until(async () => String(await read(page, 'document.body?.innerText')).includes(text), text)
}

async function isAt(page: Page, path: string): Promise<void> {
  await until(async () => (await read(page, 'location.pathname + location.search')) === path, path)
}

async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate(`void (location.href = '${path}')`)
  await isAt(page, path)
}

async function goBack(page: Page, path: string): Promise<void> {
  await page.evaluate('history.back()')
  await isAt(page, path)
}

/** Leaves the page, logs out on another one, and goes back. */
async function backAfterLogout(page: Page, path: string): Promise<void> {
  await page.evaluate(WATCH_RETURN)
  await visit(page, '/other.html')
  await until(async () => (await read(page, LOG_OUT)) === 204, 'a logout')
  await goBack(page, path)
}

/**
 * A user who sees account.html of docs/frontends.md.
 * @param without functions of the browser without which its script does
 */
async function accountPage(t: Test, name: BrowserName, without: readonly string[] = []) {
  const lacking = without.map((each) => `const ${each} = function () {}\n`).join('')
  const STATIC_DIR = t.testdir({
    'account.html': documentedSample('account.html'),
    'account.js': lacking + documentedSample('account.js'),
    'other.html': OTHER,
  })
  const { server, upstream, metric } = await startWorld(t, { upstream: 'scripted', settings: { STATIC_DIR } })
  upstream.onRest = (_request, response) => answerJson(response, 200, ACCOUNTS)
  const service = new TradingService(upstream)
  const page = await (await testWindow(t, name)).newPage()
  await page.evaluateOnNewDocument(WATCH_SOCKETS)
  await logInBy(page, `${server.url}/auth/login?return_to=/account.html`)
  await shows(page, 'VRTC100')
  /** The first event of the socket of the page. */
  const first = async (): Promise<unknown> => {
    await until(async () => Boolean(await read(page, 'events[0]')), 'an event of a socket')
    return page.evaluate('events[0]')
  }
  return { page, service, first, sockets: async () => (await metric('bff_relays')).get('kind="demo"') }
}

for (const name of browsersOr('chrome')) {
  await test(`${name}: Back after a logout shows the account, unless a page does something about it`, async (t) => {
    const { page } = await accountPage(t, name, ['addEventListener', 'WebSocket'])
    await backAfterLogout(page, '/account.html')
    await shows(page, 'VRTC100')
    t.equal(await page.evaluate('isRestored'), true)
  })

  for (const without of [[], ['WebSocket']]) {
    const which = without.length === 0 ? 'with a socket' : 'without a socket'
    await test(`${name}: Back after a logout shows the login on account.js of docs/frontends.md, ${which}`, async (t) => {
      const { page } = await accountPage(t, name, without)
      await backAfterLogout(page, '/account.html')
      await shows(page, 'Log in')
      t.notMatch(await page.evaluate('document.body.innerText'), /VRTC100/)
      // Firefox does not keep a page that has a WebSocket, so it loads the page again.
      const isKept = name === 'chrome' || without.length > 0
      t.equal(await page.evaluate('sessionStorage.wasHidden'), isKept ? 'true' : undefined)
      t.equal(await page.evaluate('document.documentElement.hidden'), false)
    })
  }

  for (const [which, make, account, login] of PACKAGE_PAGES) {
    await test(`${name}: the ${which} has no socket once it is left; Back after a logout shows the login`, async (t) => {
      const STATIC_DIR = await make(t)
      await writeFile(join(STATIC_DIR, 'other.html'), OTHER)
      const { server, quiet } = await startWorld(t, { settings: { STATIC_DIR } })
      const page = await (await testWindow(t, name)).newPage()
      await logInBy(page, `${server.url}/auth/login`)
      await page.waitForSelector(account, { visible: true })
      await visit(page, '/other.html')
      await quiet()
      await goBack(page, '/')
      await page.waitForSelector(account, { visible: true })
      await backAfterLogout(page, '/')
      await page.waitForSelector(login, { visible: true })
      t.equal(await page.$(`${account}:not([hidden] *, [hidden])`), null)
      t.equal(await page.evaluate('globalThis.isRestored'), name === 'chrome' ? true : undefined)
    })
  }
}

await test('Chromium keeps the sockets of pages that were left, so that the sixth page gets none', async (t) => {
  const { page, first, sockets } = await accountPage(t, 'chrome', ['addEventListener'])
  t.equal(await first(), 'answer 1')
  for (const number of [1, 2, 3, 4]) {
    await visit(page, `/account.html?${number}`)
    t.equal(await first(), 'answer 1')
  }
  t.equal(await sockets(), 5)
  await visit(page, '/account.html?5')
  t.equal(await first(), 'end 4429 too_many_relays')
})

await test('Chromium delivers what a page sends in `pageshow` on a socket that it kept, and drops the answer', async (t) => {
  const { page, first, service } = await accountPage(t, 'chrome', ['addEventListener'])
  t.equal(await first(), 'answer 1')
  await page.evaluate(`addEventListener('pageshow', () => sockets[0].send('{"buy":"1","price":1,"req_id":7}'))`)
  await visit(page, '/other.html')
  await goBack(page, '/account.html')
  await until(async () => Number(await read(page, 'events.length')) > 1, 'the end of the socket')
  t.same(await page.evaluate('events'), ['answer 1', 'end 1006'])
  await until(() => service.count('buy') === 1, 'the order arrives')
})

for (const name of browsersOr('chrome')) {
  await test(`${name}: account.js of docs/frontends.md has one socket, on the page that the user sees`, async (t) => {
    const { page, first, sockets } = await accountPage(t, name)
    for (const number of [1, 2, 3, 4, 5, 6]) {
      t.equal(await first(), 'answer 1')
      await visit(page, `/account.html?${number}`)
    }
    t.equal(await first(), 'answer 1')
    await until(async () => (await sockets()) === 1, 'the sockets of the other pages are closed')
    await goBack(page, '/account.html?5')
    t.equal(await first(), 'answer 1')
    await until(async () => (await sockets()) === 1, 'one socket')
  })
}
