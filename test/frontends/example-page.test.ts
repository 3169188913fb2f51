import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Page, WebSocketRoute } from 'playwright-core'
import { test } from 'tap'
import { compile } from '../../client/build.ts'
import type { Client, SocketError as SocketErrorClass } from '../../client/dist/client.js'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { bundled, examplePage } from '../support/browser/example-page.ts'
import { failure } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

/** Waits until an element of the page has a text. */
async function shows(page: Page, id: string, text: RegExp): Promise<void> {
  await page.locator(`#${id}`).filter({ hasText: text }).waitFor()
}

await test('the page in docs/examples compiles', async (t) => {
  // The guides use more of what Vite gives to a page than the page does.
  const more = { 'src/development.ts': 'export const isDevelopment: boolean = import.meta.env.DEV' }
  const dir = await examplePage(t, more)
  await t.resolves(compile(['-p', dir], dir))
})

await test('the page in docs/examples has at most 35 lines of plumbing, besides the two for Vite', async (t) => {
  const dir = await examplePage(t)
  const code = async (name: string): Promise<string[]> =>
    (await readFile(join(dir, 'src', name), 'utf8'))
      .split('\n')
      .filter((line) => !/^\s*(?:$|\/\/|\/?\*)|import\.meta/.test(line))
  const files = await Promise.all(['page.ts', 'desk.ts', 'view.ts'].map(code))
  const users = files.flat().filter((line) => /\b(?:client|market|once|explain)\b|#socket|trading/.test(line))
  const lines = [...(await code('trading.ts')), ...users]
  t.comment(`${lines.length} of ${files.flat().length + lines.length - users.length} lines are plumbing`)
  t.ok(users.length > 15)
  t.ok(lines.length <= 35, lines.join('\n'))
})

await test('the page in docs/examples: a user cancels, signs up, trades and logs out, and sees every failure', async (t) => {
  const { server, upstream } = await startWorld(t, { settings: { STATIC_DIR: await bundled(await examplePage(t)) } })
  const context = await testChromium(t)
  const page = await context.newPage()
  const faults: string[] = []
  context.on('weberror', (fault) => faults.push(String(fault.error())))

  await page.goto(`${server.url}/deep/link`)
  await shows(page, 'session', /^Log in to trade/)
  for (const symbol of ['R_100', 'R_50']) {
    await shows(page, symbol, /^\d/)
    const price = (await page.textContent(`#${symbol}`)) ?? ''
    await page.locator(`#${symbol}`).filter({ hasNotText: price }).waitFor()
  }

  await page.click('#signup')
  await page.click('[data-action=cancel]')
  await shows(page, 'message', /You cancelled/)
  await page.click('#again')
  await sendForm(page, 'trader@example.test')
  await shows(page, 'session', /You are logged in until/)
  t.equal(page.url(), `${server.url}/deep/link`)
  await shows(page, 'wallets', /main: [\d.]+ USD/)
  await shows(page, 'balance', /[1-9]\d*\.\d\d USD/)

  await page.click('text=Get a price')
  await page.click('#buy')
  await shows(page, 'contracts', /(?:won|lost), profit -?\d/)
  await page.fill('#stake', '100000000')
  await page.click('text=Get a price')
  await shows(page, 'message', /maximum payout/)

  await loseReplies(page)
  await page.reload()
  await shows(page, 'balance', /USD/)
  // Unlike the purchase of a moment ago, of which the page no longer knows.
  await page.fill('#stake', '12')
  await page.click('text=Get a price')
  await page.click('#buy')
  await shows(page, 'message', /You have bought a contract/)
  await shows(page, 'contracts', /^\s*open, profit/)
  await page.reload()
  await shows(page, 'contracts', /^\s*open, profit/)
  t.equal(await page.locator('#contracts li').count(), 1)

  await page.fill('#stake', '100000000')
  await page.click('text=Get a price')
  await shows(page, 'message', /maximum payout/)
  const other = await context.newPage()
  await other.goto(server.url)
  await other.click('#logout')
  await shows(page, 'session', /You are logged out: logout/)
  t.equal(await page.textContent('#message'), '', 'what failed for a user is not told to the next one')
  t.notOk(await page.isVisible('#user'))

  // The provider still knows the user.
  await page.click('#login')
  await shows(page, 'connection', /open/)
  await upstream.close()
  await page.reload()
  await shows(page, 'message', /The trading service could not be reached/)
  await shows(page, 'market', /connecting|waiting/)
  t.same(faults, [])
})

await test('the page in docs/examples: a contract that was bought in another tab, or while the connection was lost, appears', async (t) => {
  const { server } = await startWorld(t, { settings: { STATIC_DIR: await bundled(await examplePage(t)) } })
  const context = await testChromium(t)
  const page = await context.newPage()
  const cut = await loseReplies(page)
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await shows(page, 'connection', /^open$/)
  const other = await context.newPage()
  await loseReplies(other)
  await other.goto(server.url)
  for (const count of [1, 2]) {
    if (count === 2) cut()
    await other.click('text=Get a price')
    await other.click('#buy')
    await other
      .locator('#contracts li')
      .nth(count - 1)
      .waitFor()
    await page
      .locator('#contracts li')
      .nth(count - 1)
      .waitFor()
  }
})

await test('the page in docs/examples: a user whose login allows no wallets trades, and one without an account sees no fault', async (t) => {
  const { server } = await startWorld(t, { settings: { STATIC_DIR: await bundled(await examplePage(t)) } })
  const context = await testChromium(t)
  const page = await context.newPage()
  const faults: string[] = []
  context.on('weberror', (fault) => faults.push(String(fault.error())))
  // As the trading service does for the scopes `trade account_manage`.
  await page.route('**/wallets', (route) => route.fulfill({ status: 403, json: { errors: [{ code: 'Forbidden' }] } }))
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await shows(page, 'connection', /^open$/)
  await shows(page, 'message', /403/)
  await page.route('**/accounts', (route) => route.fulfill({ json: { data: [] } }))
  await page.reload()
  await shows(page, 'session', /You are logged in until/)
  await shows(page, 'message', /403/)
  await shows(page, 'R_100', /^\d/)
  t.same(faults, [])
})

for (const feed of ['relay', 'shared']) {
  await test(`the page in docs/examples with PUBLIC_FEED=${feed}: the price list and the chart of the same symbol go on`, async (t) => {
    const settings = { STATIC_DIR: await bundled(await examplePage(t)), PUBLIC_FEED: feed }
    const { server } = await startWorld(t, { settings })
    const page = await (await testChromium(t)).newPage()
    await page.goto(server.url)
    const points = (): Promise<string | null> => page.getAttribute('#chart', 'points')
    await page.locator('#chart[points]').waitFor({ state: 'attached' })
    const before = { price: (await page.textContent('#R_100')) ?? '', points: await points() }
    t.equal(before.points?.split(' ').length, 100, 'the whole history')
    t.notMatch(before.points, /NaN|Infinity/)
    await page.locator('#R_100').filter({ hasNotText: before.price }).waitFor()
    await until(async () => (await points()) !== before.points)
    await shows(page, 'R_50', /^\d/)
    await shows(page, 'market', /^open$/)
    t.equal(await page.textContent('#message'), '')
  })
}

await test('the page in docs/examples: offline, or where a part of the package is missing, the user reads that nothing was sent', async (t) => {
  const dir = await examplePage(t)
  const { outputFiles } = await build({
    stdin: {
      contents: `export * from './src/trading.ts'; export { SocketError } from 'trading-bff-client'`,
      resolveDir: dir,
    },
    bundle: true,
    format: 'esm',
    write: false,
  })
  const { client, explain, SocketError } = (await import(
    `data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? '')}`
  )) as { client: Client; explain: (error: unknown) => string; SocketError: typeof SocketErrorClass }
  Object.defineProperty(globalThis.navigator, 'onLine', { configurable: true, value: false })
  t.teardown(() => {
    client.close()
    Reflect.deleteProperty(globalThis.navigator, 'onLine')
  })
  const transfer = client.api('/payment-agents/v1/transfer', { method: 'POST', body: '{}' })
  const missing = new SocketError('not_loaded', 'could not be loaded')
  for (const error of [await failure(transfer), missing]) {
    t.equal(explain(error), 'The connection is interrupted, so nothing was sent.')
  }
})

/**
 * From the next page on, contracts last for minutes, and the connection breaks before the reply to a purchase arrives.
 * @returns a function that breaks it
 */
async function loseReplies(page: Page): Promise<() => void> {
  const routes: WebSocketRoute[] = []
  const cut = (): void => routes.forEach((route) => void route.close({ code: 1012 }))
  await page.routeWebSocket(/\/ws\/trading\//, (route) => {
    routes.push(route)
    const there = route.connectToServer()
    route.onMessage((message) => there.send(String(message).replace('"duration_unit":"t"', '"duration_unit":"m"')))
    there.onMessage((message) => {
      if (String(message).includes('"msg_type":"buy"')) cut()
      else route.send(message)
    })
  })
  return cut
}
