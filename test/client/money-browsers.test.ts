import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import type { Page } from 'puppeteer-core'
import { test, type Test } from 'tap'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { httpServer } from '../support/server/http-server.ts'
import { until } from '../support/time/until.ts'

const DIST = new URL('../../client/dist/', import.meta.url)
const CHARTS = new URL(
  '../../node_modules/lightweight-charts/dist/lightweight-charts.standalone.development.mjs',
  import.meta.url,
)
const ID = '9007199254740993'
const SESSION = {
  authenticated: true,
  now: 1,
  expires_at: 3601,
  idle_expires_at: 601,
  scope: 'trade',
  session: 'first',
}

const PAGE = `<!doctype html><title>page</title><div id=chart></div>
  <script type="module">
    import { createClient, once } from '/client.js'
    globalThis.client = createClient()
    globalThis.order = () =>
      once((idempotencyKey) => client.api('/payment-agents/v1/transfer', { method: 'POST', json: { data: 1 }, idempotencyKey }), {
        remember: 'transfer',
      }).then(({ status }) => status, ({ outcome, code }) => outcome ?? code)
  </script>`

/** A call that has arrived: its key, and what answers it. */
interface Held {
  readonly key: string | undefined
  readonly response: ServerResponse
}

/** A page in a browser, and the orders that have arrived from it. @param sent when a file is sent */
async function pageIn(
  t: Test,
  browser: 'chrome' | 'firefox',
  sent: (path: string) => Promise<unknown> = async () => undefined,
): Promise<{ page: Page; held: Held[] }> {
  const held: Held[] = []
  const url = await httpServer(t, ({ url = '', method, headers }, response) => {
    if (url === '/') return void response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
    if (url === '/auth/session') return void response.end(JSON.stringify(SESSION))
    if (method === 'POST') return void held.push({ key: String(headers['idempotency-key']), response })
    if (url.startsWith('/api/')) return void response.end(`{"data":[{"id":${ID}}]}`)
    const file = url === '/charts.js' ? CHARTS : new URL(`.${url}`, DIST)
    const text = sent(url).then(() => readFile(file))
    text.then(
      (text) => response.writeHead(200, { 'content-type': 'text/javascript' }).end(text),
      () => response.writeHead(404).end(),
    )
  })
  const page = await (await testWindow(t, browser)).newPage()
  await page.goto(url)
  await page.waitForFunction('globalThis.order')
  return { page, held }
}

for (const name of browsersOr('chrome')) {
  await test(`${name}: an order whose code arrives long after the click, as on a machine that slept, is not sent`, async (t) => {
    let asked = false
    let send: ((nothing?: unknown) => void) | undefined
    const { page, held } = await pageIn(t, name, async (path) => {
      if (path !== '/client/orders.js') return
      asked = true
      await new Promise((resolve) => (send = resolve))
    })
    await page.evaluate('void (globalThis.late = order())')
    await until(() => asked)
    await page.evaluate('Date.now = ((now) => () => now() + 60_000)(Date.now.bind(Date))')
    send?.()
    t.equal(await page.evaluate('late'), 'not_loaded')
    const again = page.evaluate('order()')
    await until(() => held.length === 1)
    held[0]?.response.writeHead(200, { 'x-request-id': '1' }).end('{}')
    t.equal(await again, 200)
    t.equal(held.length, 1)
  })

  await test(`${name}: the replay of a double click does not forget the key of the next order, which a reload sends again`, async (t) => {
    const { page, held } = await pageIn(t, name)
    const answer = (index: number): void => void held[index]?.response.writeHead(200, { 'x-request-id': '1' }).end('{}')
    const clicks = page.evaluate('Promise.all([order(), order()])')
    await until(() => held.length === 2)
    t.equal(held[0]?.key, held[1]?.key)
    answer(0)
    await until(async () => (await page.evaluate('sessionStorage.length')) === 0)
    await page.evaluate('void order()')
    await until(() => held.length === 3)
    t.not(held[2]?.key, held[0]?.key)
    answer(1)
    t.same(await clicks, [200, 200])
    t.match(await page.evaluate('JSON.stringify(sessionStorage)'), held[2]?.key)

    await page.reload()
    await page.waitForFunction('globalThis.order')
    const again = page.evaluate('order()')
    await until(() => held.length === 4)
    t.equal(held[3]?.key, held[2]?.key)
    answer(3)
    t.equal(await again, 200)
    t.equal(await page.evaluate('sessionStorage.length'), 0)
  })

  await test(`${name}: an order waits for the lock of its key, but not for a tab that never gives it back`, async (t) => {
    const { page, held } = await pageIn(t, name)
    const lost = page.evaluate('order()')
    for (const count of [1, 2]) {
      await until(() => held.length === count)
      // Without a byte of the answer, Chromium itself would send the call again.
      const { response } = held[count - 1] as Held
      response.writeHead(200, { 'content-length': '10' }).write('{', () => response.destroy())
    }
    t.equal(await lost, 'unknown')
    await page.evaluate('void navigator.locks.request(Object.keys(sessionStorage)[0], () => new Promise(() => {}))')
    const order = page.evaluate('order()')
    await page.waitForFunction('navigator.locks.query().then(({ pending }) => pending.length === 1)')
    t.equal(held.length, 2)
    await until(() => held.length === 3)
    t.equal(held[2]?.key, held[0]?.key)
    held[2]?.response.writeHead(200, { 'x-request-id': '1' }).end('{}')
    t.equal(await order, 200)
    t.equal(await page.evaluate('sessionStorage.length'), 0)
  })

  await test(`${name}: ids beyond 2^53 are texts in answers, also where JSON.parse does not give the text of a number`, async (t) => {
    const { page } = await pageIn(t, name)
    const read = `client.api('/wallet/v1/wallets').then((response) => response.json()).then(({ data }) => data[0].id)`
    t.equal(await page.evaluate(read), ID)
    await page.evaluate(
      `(({ parse }) => (JSON.parse = (text, reviver) => parse(text, reviver && ((name, value) => reviver(name, value, {})))))(JSON)`,
    )
    t.equal(await page.evaluate(read), ID)
  })

  await test(`${name}: a chart library takes a series to which prices and candles come late`, async (t) => {
    const { page } = await pageIn(t, name)
    const draws = await page.evaluate(`(async () => {
      const { series } = await import('/client/series.js')
      const { createChart, LineSeries, CandlestickSeries } = await import('/charts.js')
      const chart = createChart(document.getElementById('chart'), { width: 400, height: 200 })
      const feed = (style) => {
        let push
        const socket = {
          request: async () => ({ history: { times: [100], prices: [1] }, candles: [{ epoch: 60, open: 1, high: 1, low: 1, close: 1 }] }),
          subscribe: (_message, listener) => ((push = listener), () => undefined),
        }
        return { series: series(socket, { symbol: 'R_100', style }), push: (body) => push({ req_id: 1, ...body }) }
      }
      const faults = []
      const prices = feed('ticks')
      const line = chart.addSeries(LineSeries)
      const candles = feed('candles')
      const bars = chart.addSeries(CandlestickSeries)
      let draws = 0
      const drawn = (draw) => () => {
        try {
          draw()
          draws++
        } catch (error) {
          faults.push(String(error))
        }
      }
      prices.series.subscribe(drawn(() => line.setData(prices.series.get().points.map(({ epoch, quote }) => ({ time: epoch, value: quote })))))
      candles.series.subscribe(drawn(() => bars.setData(candles.series.get().points.map(({ epoch, ...bar }) => ({ time: epoch, ...bar })))))
      for (const epoch of [101, 103, 102, 104]) {
        prices.push({ tick: { epoch, quote: epoch } })
        await new Promise((resolve) => setTimeout(resolve))
      }
      for (const open_time of [60, 180, 120, 180]) {
        candles.push({ ohlc: { open_time, open: '1', high: '2', low: '1', close: '1.5' } })
        await new Promise((resolve) => setTimeout(resolve))
      }
      return { draws, faults, ends: [prices, candles].map(({ series }) => series.get().points.map(({ epoch }) => epoch)) }
    })()`)
    t.match(draws, {
      faults: { length: 0 },
      ends: [
        [100, 101, 102, 103, 104],
        [60, 120, 180],
      ],
    })
    t.ok((draws as { draws: number }).draws >= 8)
  })
}
