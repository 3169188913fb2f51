import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { reactApp, renderedApp } from '../support/client/react-app.ts'
import { TradingService } from '../support/client/trading-service.ts'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { startWorld, type World } from '../support/world.ts'

const ALL = `function App() {
  const session = useSession(client)
  const { data, isLoading } = useApi(client, '/trading/v1/options/accounts')
  const price = useSubscription(client, { ticks: 'R_100' })
  const own = useSubscription(client, { balance: 1 }, 'VRTC100')
  const chart = useSeries(client, { symbol: 'R_100', style: 'ticks' })
  const { socket, status } = useSocket(client)
  return h('p', null, [session.status, data ? 'data' : 'none', isLoading, price.status.state, own.status.state,
    chart.points.length, socket ? 'socket' : 'no socket', status.state].join(' '))
}`

/** A page of this app whose user is logged in. */
async function userOf(t: Test, { server }: Pick<World<'scripted'>, 'server'>): Promise<Page> {
  const page = await (await testChromium(t, { bypassCSP: true })).newPage()
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await page.waitForURL(`${server.url}/`)
  return page
}

const shows = (page: Page, text: string): Promise<unknown> =>
  page.waitForFunction(`document.querySelector('#root').textContent === ${JSON.stringify(text)}`)

/** Shows or hides the page. */
const visibility = (state: string): string => `Object.defineProperty(document, 'visibilityState',
  { value: '${state}', configurable: true }), document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`

await test('a server renders every hook without a request, and the browser takes its HTML over', async (t) => {
  const page = globalThis as { fetch: unknown; WebSocket: unknown; window?: unknown }
  const { fetch, WebSocket } = page
  const used: string[] = []
  page.fetch = () => used.push('fetch')
  page.WebSocket = function () {
    used.push('WebSocket')
  }
  t.teardown(() => Object.assign(page, { fetch, WebSocket }))
  t.equal(page.window, undefined)
  const html = await renderedApp(t, ALL)
  Object.assign(page, { fetch, WebSocket })
  t.equal(html, '<p>unknown none false waiting waiting 0 no socket waiting</p>')
  t.same(used, [])

  const world = await startWorld(t, {
    upstream: 'scripted',
    settings: { STATIC_DIR: await reactApp(t, ALL, { html }) },
  })
  new TradingService(world.upstream).instead['ticks_history'] = (_message, reply) =>
    reply({ history: { prices: [], times: [] } })
  const user = await userOf(t, world)
  await shows(user, 'active data false open open 0 socket open')
  t.same(await user.evaluate('faults'), [])
})

await test('useApi: one call in StrictMode; a reload keeps the data, another path does not; leaving aborts the call', async (t) => {
  const app = `function Data({ path }) {
      const { data, error, isLoading, reload } = useApi(client, path)
      globalThis.reload = reload
      return h('p', null, data ? data.data : 'none', isLoading ? ' loading' : '', error ? ' ' + error.status : '')
    }
    function App() {
      const [path, choose] = useState('/wallet/v1/wallets')
      globalThis.choose = choose
      return path === null ? 'left' : h(Data, { path: path || undefined })
    }`
  const world = await startWorld(t, { upstream: 'scripted', settings: { STATIC_DIR: await reactApp(t, app) } })
  const calls: { request: IncomingMessage; response: ServerResponse }[] = []
  world.upstream.onRest = (request, response) => calls.push({ request, response })
  const answer = (number: number, status: number, data: string): void => {
    const { response } = calls[number] ?? {}
    if (response) answerJson(response, status, { data })
  }
  const arrived = (count: number): Promise<void> => until(() => calls.length === count, `${count} calls`)
  const page = await userOf(t, world)
  await shows(page, 'none loading')
  await arrived(1)
  answer(0, 200, 'first')
  await shows(page, 'first')

  await page.evaluate('globalThis.first = reload')
  await page.evaluate('reload()')
  await shows(page, 'first loading')
  await arrived(2)
  answer(1, 404, 'refused')
  await shows(page, 'first 404')
  await page.evaluate('reload()')
  await arrived(3)
  answer(2, 200, 'second')
  await shows(page, 'second')
  t.ok(await page.evaluate('first === reload'), 'reload is the same function in every render')

  await page.evaluate(`choose('/account/v1/nickname')`)
  await shows(page, 'none loading')
  await arrived(4)
  await page.evaluate(`choose('/wallet/v1/wallets')`)
  await arrived(5)
  await until(() => calls[3]?.request.destroyed === true, 'the call of the other path is aborted')
  answer(4, 200, 'third')
  await shows(page, 'third')
  await page.evaluate('reload()')
  await arrived(6)
  await page.evaluate('choose(null)')
  await shows(page, 'left')
  await until(() => calls[5]?.request.destroyed === true, 'the call of a component that has left is aborted')
  await page.evaluate(`choose('')`)
  await shows(page, 'none')
  t.equal(calls.length, 6)
  t.same(await page.evaluate('faults'), [])
})

await test('useApi: what failed for a reason that passes is called again: soon, and when network, user or server are back', async (t) => {
  const app = `function Data({ path }) {
      const { data, error, reload } = useApi(client, path)
      globalThis[path.slice(1, 7)] = reload
      return h('p', null, data ? data.data : 'none', error ? ' ' + error.status : '')
    }
    const App = () => [h(Data, { key: 1, path: '/wallet/v1/wallets' }), h(Data, { key: 2, path: '/account/v1/nickname' })]`
  const world = await startWorld(t, { upstream: 'scripted', settings: { STATIC_DIR: await reactApp(t, app) } })
  let status = 500
  let nicknames = 0
  world.upstream.onRest = ({ url }, response) => {
    if (url === '/wallet/v1/wallets') return answerJson(response, status, { data: 'wallets' })
    nicknames++
    answerJson(response, 404, {})
  }
  const page = await userOf(t, world)
  await shows(page, 'none 500none 404')
  status = 200
  await shows(page, 'walletsnone 404')
  // From now on, no delay ever ends.
  await page.evaluate('Math.random = () => 1e9')
  const check = 'client.session.check().then(() => client.session.get().status)'
  for (const [fails, returns] of [
    [`dispatchEvent(new Event('offline'))`, `dispatchEvent(new Event('online'))`],
    [visibility('hidden'), visibility('visible')],
    [check, check],
  ] as const) {
    await page.route(/wallet|session/, (route) => route.abort())
    await page.evaluate(fails)
    await page.evaluate('wallet()')
    await shows(page, 'wallets 0none 404')
    await page.unroute(/wallet|session/)
    await page.evaluate(returns)
    await shows(page, 'walletsnone 404')
  }
  t.equal(nicknames, 1, 'a refusal would come again')
  t.same(await page.evaluate('faults'), [])
})

await test('an account of null is none yet: nothing is opened until there is one, and nothing stays open after it', async (t) => {
  const app = `function App() {
      const [account, choose] = useState(null)
      globalThis.choose = choose
      const session = useSession(client)
      const { socket, status } = useSocket(client, account)
      const own = useSubscription(client, { balance: 1 }, account)
      const chart = useSeries(client, { symbol: 'R_100', style: 'ticks' }, account)
      return h('p', null, [session.status, socket ? 'socket' : 'none', status.state, own.status.state,
        chart.points.length].join(' '))
    }`
  const world = await startWorld(t, { upstream: 'scripted', settings: { STATIC_DIR: await reactApp(t, app) } })
  const service = new TradingService(world.upstream)
  service.instead['ticks_history'] = (_message, reply) => reply({ history: { prices: [], times: [] } })
  const page = await userOf(t, world)
  await shows(page, 'active none waiting waiting 0')
  t.same(world.upstream.upgrades, [])
  await page.evaluate(`choose('VRTC100')`)
  await shows(page, 'active socket open open 0')
  t.equal(world.upstream.upgrades.length, 1)
  await page.evaluate(`globalThis.choose(null)`)
  await shows(page, 'active none waiting waiting 0')
  await until(() => service.streams === 0, 'the connection is closed')
  await page.evaluate(`choose(undefined)`)
  await shows(page, 'active socket open open 0')
  t.match(world.upstream.upgrades.at(-1), { url: /public/ })
  t.same(await page.evaluate('faults'), [])
})

await test('useSeries and useSocket: a chart that another symbol replaces at once, and sockets that end with the component', async (t) => {
  const app = `const shown = (globalThis.shown = [])
    function Chart({ symbol }) {
      const { points } = useSeries(client, { symbol, style: 'ticks', count: 30 })
      const { socket, status } = useSocket(client)
      globalThis.socket = socket
      shown.push([symbol, points])
      return h('p', null, symbol, ' ', points.length, ' ', status.state)
    }
    function App() {
      const [symbol, choose] = useState('R_100')
      globalThis.choose = choose
      return symbol && h(Chart, { symbol })
    }`
  const { server, upstream } = await startWorld(t, { settings: { STATIC_DIR: await reactApp(t, app) } })
  const page = await (await testChromium(t, { bypassCSP: true })).newPage()
  await page.goto(server.url)
  await shows(page, 'R_100 30 open')
  const grows = `shown.at(-1)[1].at(-1).epoch > shown.find(([, points]) => points.length === 30)[1].at(-1).epoch + 1`
  await page.waitForFunction(grows)
  await page.evaluate(`choose('R_50')`)
  await shows(page, 'R_50 30 open')
  type Point = { readonly epoch: number; readonly quote: number }
  const shown = await page.evaluate<[string, Point[]][]>('shown')
  const quotesOf = (symbol: string): Set<number> =>
    new Set(shown.flatMap(([of, points]) => (of === symbol ? points.map(({ quote }) => quote) : [])))
  t.ok(quotesOf('R_100').size > 30)
  t.notOk(
    [...quotesOf('R_50')].some((quote) => quotesOf('R_100').has(quote)),
    'no point of the symbol before',
  )
  for (const [, points] of shown) {
    t.ok(
      points.every(({ epoch }, index) => index === 0 || epoch >= Number(points[index - 1]?.epoch)),
      'in order',
    )
  }
  t.match(await page.evaluate(`socket.request({ time: 1 })`), { time: Number })
  await page.evaluate('globalThis.before = socket')
  await page.evaluate(`choose('')`)
  await until(() => upstream.sockets().public === 0, 'the connection is closed')
  t.equal(await page.evaluate(`before.request({ time: 1 }).catch(({ code }) => code)`), 'closed')
  t.same(await page.evaluate('faults'), [])
})
