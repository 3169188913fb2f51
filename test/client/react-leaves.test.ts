import { join } from 'node:path'
import { test } from 'tap'
import { testChromium } from '../support/browser/chromium.ts'
import { reactApp } from '../support/client/react-app.ts'

/** More than it takes until all hooks have what they show. */
const STEPS = 40

/** Counts the timers that are neither over nor cleared, and the listeners of the page that have not ended. */
const COUNTED = `
  const left = (globalThis.left = { timers: new Set(), listeners: 0 })
  const { setTimeout: later, clearTimeout: clear, addEventListener: listen } = globalThis
  globalThis.setTimeout = (call, ms) => {
    const timer = later(() => (left.timers.delete(timer), call()), ms)
    left.timers.add(timer)
    return timer
  }
  globalThis.clearTimeout = (timer) => (left.timers.delete(timer), clear(timer))
  globalThis.addEventListener = (name, listener, options) => {
    if (options?.signal) {
      left.listeners++
      options.signal.addEventListener('abort', () => left.listeners--)
    }
    return listen.call(globalThis, name, listener, options)
  }`

/** The server of one client in the page. Its answers arrive one by one, when a step says so; those of calls may be failures. */
const SERVER = `
  const serverOf = (fails) => {
    const server = { waiting: [], sockets: new Set(), calls: 0 }
    const hold = (deliver) => server.waiting.push(deliver)
    return Object.assign(server, {
      baseUrl: 'http://' + Math.random() + '.test',
      fetch: async (url, { signal }) => {
        const now = Math.floor(Date.now() / 1000)
        const session = { authenticated: true, now, expires_at: 5e9, idle_expires_at: 5e9, scope: '', session: 's' }
        if (url.includes('/auth/session')) return Response.json(session)
        server.calls++
        await new Promise((resolve, reject) => {
          hold(resolve)
          signal.addEventListener('abort', () => reject(signal.reason))
        })
        return fails ? new Response('', { status: 502 }) : Response.json({ data: [] })
      },
      WebSocket: class {
        readyState = 0
        bufferedAmount = 0
        constructor(url) {
          this.url = url
          server.sockets.add(this)
          hold(() => this.readyState === 0 && ((this.readyState = 1), this.onopen?.({})))
        }
        send(text) {
          const { req_id, ping, subscribe, ticks_history } = JSON.parse(text)
          const history = { times: [1], prices: [1] }
          const body = ping ? { ping: 'pong' } : ticks_history ? { history } : { tick: { epoch: 1, quote: 1 } }
          const stream = subscribe && { subscription: { id: 's' + req_id } }
          const data = JSON.stringify({ req_id, ...body, ...stream })
          hold(() => this.readyState === 1 && this.onmessage?.({ data }))
        }
        close() {
          this.readyState = 3
          server.sockets.delete(this)
        }
      },
    })
  }`

const APP = `
  import { createClient } from 'trading-bff-client'
  function App() {
    return null
  }
  function Part({ client, onShown }) {
    const { data, error } = useApi(client, '/wallet/v1/wallets')
    useSession(client)
    useSocket(client, 'VRTC100')
    const price = useSubscription(client, { ticks: 'R_100' })
    const own = useSubscription(client, { ticks: 'R_100' }, 'VRTC100')
    const { points } = useSeries(client, { symbol: 'R_100', style: 'ticks' })
    if ((data ?? error) && price.data && own.data && points.length > 0) onShown()
    return null
  }
  const turn = () => new Promise((done) => later(done))
  /** Unmounts a part after so many answers. */
  globalThis.walk = async (steps, fails) => {
    const server = serverOf(fails)
    const client = createClient(server)
    const root = createRoot(document.createElement('div'))
    let isShown = false
    root.render(h(StrictMode, null, h(Part, { client, onShown: () => (isShown = true) })))
    const answer = async () => {
      server.waiting.shift()?.()
      await turn()
    }
    for (let step = 0; step < steps; step++) await answer()
    root.unmount()
    for (let more = 0; more < 8; more++) await answer()
    const { calls } = server
    // A connection is closed a moment after its last user. Its pings are answered until then.
    const sockets = () => [...server.sockets].filter(({ url }) => !url.endsWith('/ws/session'))
    while (sockets().length > 0) await answer()
    client.close()
    return { steps, fails, isShown, calls, late: server.calls - calls }
  }`

await test('a part of a page that is unmounted at any moment leaves no socket, and with its client no timer and no listener', async (t) => {
  const dir = await reactApp(t, COUNTED + SERVER + APP)
  const page = await (await testChromium(t)).newPage()
  await page.route('**/*', (route) => {
    const { pathname } = new URL(route.request().url())
    return route.fulfill({ path: join(dir, pathname === '/' ? 'index.html' : pathname) })
  })
  await page.goto('http://localhost/')
  const walks = `[false, true].flatMap((fails) => Array.from({ length: ${STEPS} }, (_, steps) => walk(steps, fails)))`
  const all = await page.evaluate<{ fails: boolean; isShown: boolean; calls: number; late: number }[]>(
    `Promise.all(${walks})`,
  )
  // React 19 shows it later than React 18.
  t.ok(all.filter(({ isShown }) => isShown).length > STEPS / 2, 'all hooks had what they show in many of them')
  t.same(
    all.filter(({ fails, calls, late }) => (calls > 1 && !fails) || late > 0),
    [],
    'each calls once, also in StrictMode, unless that fails, and not after its end',
  )
  await page.waitForFunction('left.timers.size === 0 && left.listeners === 0')
  t.same(await page.evaluate('faults'), [])
})
