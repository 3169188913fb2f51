import { readFileSync } from 'node:fs'
import { chromium, type Browser, type Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { TradingService } from '../support/trading-service.ts'
import { BROWSERS, testBrowser } from '../support/browsers.ts'
import { CHROMIUM, CHROMIUM_ARGUMENTS, testChromium } from '../support/chromium.ts'
import { relayWorld, type RelayWorld } from '../support/relay-world.ts'
import { SessionServer } from '../support/session-server.ts'
import { StallingProxy } from '../support/stalling-proxy.ts'
import { until } from '../support/until.ts'

const DIST = new URL('../../client/dist/', import.meta.url)

/** A page that shows the state of the session. */
const FILES = {
  'index.html': `<!doctype html><title>page</title><a href="/other.html">other</a>
    <script type="module">
      import { createClient } from '/client.js'
      const { dataset } = document.documentElement
      globalThis.client = createClient()
      const show = () => (dataset.session = client.session.get().status)
      client.session.subscribe(show)
      show()
      addEventListener('pageshow', (event) => (dataset.restored = event.persisted))
      addEventListener('unhandledrejection', () => (dataset.fault = 'an unhandled rejection'))
    </script>`,
  'other.html': '<!doctype html><title>other</title>',
  'client.js': readFileSync(new URL('client.js', DIST), 'utf8'),
}
/** Without this, the server's Content-Security-Policy would block the scripts of the tests. */
const SCRIPTED = { bypassCSP: true }
const shows = (state: string): string => `document.documentElement.dataset.session === '${state}'`

async function sessionServer(t: Test): Promise<SessionServer> {
  const server = await SessionServer.start(t)
  server.isLoggedIn = true
  server.files = {
    '/auth/signup': FILES['other.html'],
    '/': FILES['index.html'],
    '/other.html': FILES['other.html'],
    '/client.js': FILES['client.js'],
  }
  return server
}

for (const name of BROWSERS) {
  const count = name === 'chrome' ? 20 : 5
  await test(`${name}: ${count} tabs share one session socket, and learn of a logout and a login`, async (t) => {
    const server = await sessionServer(t)
    const browser = await testBrowser(t, name)
    const pages = await Promise.all(Array.from({ length: count }, () => browser.newPage()))
    for (const page of pages) await page.goto(server.url)
    const all = (state: string): Promise<unknown> =>
      Promise.all(pages.map((page) => page.waitForFunction(shows(state), { polling: 20 })))
    await all('active')
    await until(() => server.open === 1)
    t.equal(server.handshakes, 1)
    for (let round = 0; round < 3; round++) {
      const started = performance.now()
      await pages[3]?.evaluate('client.logout()')
      await all('anonymous')
      t.ok(performance.now() - started < (name === 'chrome' ? 1500 : 2500), 'every tab knows of the logout')
      // A reload stands for a user who logs in in one tab and returns to it.
      server.isLoggedIn = true
      await pages[1]?.reload()
      await all('active')
      await until(() => server.open === 1)
    }
    await pages[0]?.close()
    pages.shift()
    await until(() => server.open === 1)
    server.isLoggedIn = false
    server.end('revoked')
    await all('anonymous')
  })
}

await test('takeAuthError(), extend() and signup() in a page', async (t) => {
  const server = await sessionServer(t)
  const page = await (await testChromium(t)).newPage()
  await page.goto(`${server.url}/?auth_error=access_denied&flow=signup&return_to=%2Fchart%3Fsymbol%3DR_100`)
  await page.waitForFunction(shows('active'))
  t.same(await page.evaluate('client.session.takeAuthError()'), {
    code: 'access_denied',
    flow: 'signup',
    againUrl: '/auth/signup?return_to=%2Fchart%3Fsymbol%3DR_100',
    loginUrl: '/auth/login?return_to=%2Fchart%3Fsymbol%3DR_100',
  })
  t.equal(page.url(), `${server.url}/`)
  t.equal(await page.evaluate('client.session.takeAuthError()'), undefined)
  await page.evaluate('client.session.extend()')
  t.equal(server.extended, 1)
  await page.goto(`${server.url}/?a=b#c`)
  await page.evaluate(`client.signup({ partner: { sidc: '1', utm_medium: 'affiliate' } })`)
  await page.waitForURL(/\/auth\//)
  t.equal(page.url(), `${server.url}/auth/signup?return_to=%2F%3Fa%3Db%23c&sidc=1&utm_medium=affiliate`)
})

await test('a page in the back/forward cache has no socket, and checks the session when it is restored', async (t) => {
  const server = await sessionServer(t)
  const page = await (await cachingChromium(t)).newPage(SCRIPTED)
  await page.goto(server.url)
  await page.waitForFunction(shows('active'))
  await until(() => server.open === 1)
  await page.goto(`${server.url}/other.html`)
  await until(() => server.open === 0)
  server.isLoggedIn = false
  await page.goBack({ waitUntil: 'commit' })
  await page.waitForFunction(shows('anonymous'))
  t.equal(await page.evaluate('document.documentElement.dataset.restored'), 'true')
  server.isLoggedIn = true
  await page.evaluate('client.session.check()')
  await until(() => server.open === 1)
})

/** A Chromium with a back/forward cache, which Playwright disables by default. */
async function cachingChromium(t: Test): Promise<Browser> {
  const ignoreDefaultArgs = ['--disable-back-forward-cache']
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: CHROMIUM_ARGUMENTS,
    ignoreDefaultArgs,
  })
  t.teardown(() => browser.close())
  return browser
}

/** A page with an open socket and a stream, behind a network that can stall. */
async function behindNetwork(t: Test): Promise<{
  page: Page
  world: RelayWorld
  service: TradingService
  network: StallingProxy
  state: () => Promise<string>
}> {
  let port = 0
  const network = await StallingProxy.start(t, () => port)
  const origin = `http://localhost:${network.port}`
  const settings = { STATIC_DIR: t.testdir(FILES), FRONTEND_ORIGINS: origin }
  const world = await relayWorld(t, { anonymous: true, settings })
  port = world.server.port
  const service = new TradingService(world.upstream)
  const page = await (await cachingChromium(t)).newPage(SCRIPTED)
  await page.goto(origin)
  await page.evaluate(`
    globalThis.socket = client.publicSocket()
    globalThis.ticks = []
    socket.subscribe({ ticks: 'R_100' }, ({ tick }) => ticks.push(tick.quote))
    globalThis.buy = () => socket.command({ buy: 'a-proposal', price: 10 }).then(() => 'bought', (error) => error.code)
    undefined`)
  await page.waitForFunction('ticks.length === 1')
  return { page, world, service, network, state: () => page.evaluate<string>('socket.status().state') }
}

await test('a page that is offline knows within five seconds, and a buy is rejected with not_sent and never sent later', async (t) => {
  const { page, service, network, state } = await behindNetwork(t)
  network.isStalled = true
  await page.context().setOffline(true)
  const offline = Date.now()
  await until(async () => (await state()) !== 'open')
  t.ok(Date.now() - offline < 5000)
  t.equal(await page.evaluate('buy()'), 'not_sent')
  await new Promise((resolve) => void setTimeout(resolve, 15_000 - (Date.now() - offline)))
  t.equal(await page.evaluate('buy()'), 'not_sent')
  network.isStalled = false
  await page.context().setOffline(false)
  await until(async () => (await state()) === 'open' && service.streams >= 1)
  await page.waitForFunction('ticks.length >= 2')
  t.equal(await page.evaluate('buy()'), 'bought')
  t.equal(service.count('buy'), 1)
  t.equal(await page.evaluate('document.documentElement.dataset.fault'), undefined)
})

await test('a buy is not sent on a network that has stalled without notice', async (t) => {
  const { page, service, network, state } = await behindNetwork(t)
  network.isStalled = true
  await new Promise((resolve) => void setTimeout(resolve, 3500))
  t.equal(await state(), 'open')
  t.equal(await page.evaluate('buy()'), 'not_sent')
  network.isStalled = false
  await until(async () => (await state()) === 'open')
  await new Promise((resolve) => void setTimeout(resolve, 500))
  t.equal(service.count('buy'), 0)
})

await test('after a jump of the clock, as after sleep, the connection is stale until it replies to a ping', async (t) => {
  const { page, service, network, state } = await behindNetwork(t)
  const states = page.evaluate<string[]>(`new Promise((resolve) => {
    const states = []
    socket.onStatus(() => { states.push(socket.status().state); if (states.length === 2) resolve(states) })
    const { now } = Date
    Date.now = () => now() + 3600_000
  })`)
  t.same(await states, ['stale', 'open'])
  t.equal(service.connections, 1)
  network.isStalled = true
  await page.evaluate(`{ const { now } = Date; Date.now = () => now() + 3600_000 }`)
  await until(async () => (await state()) === 'stale')
  await until(async () => (await state()) === 'waiting' || (await state()) === 'connecting')
  network.isStalled = false
  await until(async () => (await state()) === 'open')
})

await test('when the user leaves a page, its requests settle; when the user returns, its streams continue', async (t) => {
  const { page, service } = await behindNetwork(t)
  service.intercept = (message) => 'time' in message
  await page.evaluate(`globalThis.pending = socket.request({ time: 1 }).catch((error) => error.code); undefined`)
  await until(() => service.count('time') === 1)
  const origin = new URL(page.url()).origin
  await page.goto(`${origin}/other.html`)
  await until(() => service.streams === 0)
  await page.goBack({ waitUntil: 'commit' })
  t.equal(await page.evaluate('document.documentElement.dataset.restored'), 'true')
  t.equal(await page.evaluate('pending'), 'connection_lost')
  await page.waitForFunction('ticks.length === 2')
  t.equal(service.streams, 1)
})
