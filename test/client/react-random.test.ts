import { join } from 'node:path'
import { test } from 'tap'
import { testChromium } from '../support/browser/chromium.ts'
import { reactApp } from '../support/client/react-app.ts'

const RUNS = Number(process.env['RUNS'] ?? 30)
const SEED = Number(process.env['SEED'] ?? Date.now() % 1e9)

/**
 * A server in the page. Its session is a number, the later the greater; 0 is none. What it answers about a user has the number of the
 * session that asked. Answers and the ends of old sockets arrive when a step says so, in any order.
 */
const SERVER = `(() => {
  const server = (globalThis.server = { session: 0, issued: 0, waiting: [], sockets: new Set() })
  const later = (deliver) => server.waiting.push(deliver)
  server.fetch = async (url) => {
    const { session } = server
    const now = Math.floor(Date.now() / 1000)
    const active = session > 0 && { authenticated: true, expires_at: 5e9, idle_expires_at: 5e9, scope: '', session: String(session) }
    if (url.includes('/auth/session')) return Response.json({ authenticated: false, now, ...active })
    await new Promise(later)
    if (session > 0) return Response.json({ data: '<' + session + '>' })
    const headers = { 'content-type': 'application/problem+json', 'x-request-id': 'own' }
    return new Response(JSON.stringify({ type: '/problems/login_required', code: 'login_required' }), { status: 401, headers })
  }
  server.WebSocket = class {
    readyState = 0
    bufferedAmount = 0
    session = server.session
    constructor(url) {
      if (!url.includes('/ws/trading/')) return
      server.sockets.add(this)
      later(() => {
        this.readyState = 1
        this.onopen?.({})
      })
    }
    send(text) {
      if (this.session === 0) return
      const message = JSON.parse(text)
      const { req_id } = message
      const tell = () => this.readyState === 1 && this.onmessage?.({
        data: JSON.stringify({ req_id, balance: { loginid: '<' + this.session + '>' }, subscription: { id: 's' + req_id } }),
      })
      if ('ping' in message) queueMicrotask(tell)
      else if ('subscribe' in message) for (let times = 0; times < 3; times++) later(tell)
    }
    close() {
      this.readyState = 3
      server.sockets.delete(this)
    }
    refuse() {
      this.readyState = 3
      server.sockets.delete(this)
      this.onclose?.({ code: 4401, reason: 'session_expired' })
    }
  }
  return { baseUrl: 'http://bff.test', fetch: server.fetch, WebSocket: server.WebSocket }
})()`

const APP = `
  const wrong = (globalThis.wrong = [])
  /** Data of a session must not be there once the session is a later one, or none. */
  globalThis.look = (when) => {
    const text = document.querySelector('#root').textContent
    const key = sessionKey(client.session.get())
    const session = key === undefined ? Infinity : Number(key)
    for (const [mark, number] of text.matchAll(/<(\\d+)>/g)) if (number < session) wrong.push([when, mark, key, text])
    globalThis.marks = (globalThis.marks ?? 0) + (text.includes('<') ? 1 : 0)
  }
  function Part({ path }) {
    const { data, reload } = useApi(client, path)
    globalThis.reload = reload
    const own = useSubscription(client, { balance: 1 }, 'VRTC100')
    const { status } = useSocket(client, 'VRTC100')
    return h('p', null, path, ' ', data?.data, ' ', own.data?.balance.loginid, ' ', status.state)
  }
  function App() {
    const [path, choose] = useState('/wallet/v1/wallets')
    globalThis.choose = choose
    return h(Profiler, { id: 'all', onRender: () => look('commit') }, path && h(Part, { path }))
  }`

/** What happens, by a random number. The store learns of a new session at once, in a moment or by a refused call. */
const STEPS = `
  globalThis.play = async (seed, steps) => {
    const random = () => ((seed = (seed * 48271) % 2147483647) / 2147483647)
    const any = (list) => list[Math.floor(random() * list.length)]
    const session = (next) => {
      const old = [...server.sockets]
      server.session = next
      for (const socket of old) server.waiting.push(() => socket.refuse())
      return random() < 0.7 ? client.session.check() : undefined
    }
    const deliver = () => server.waiting.splice(Math.floor(random() * server.waiting.length), 1)[0]?.()
    const all = [
      () => session(++server.issued),
      () => session(++server.issued),
      () => session(0),
      () => client.session.check(),
      () => globalThis.reload?.(),
      () => choose(any(['/wallet/v1/wallets', '/account/v1/nickname', null])),
      () => React.startTransition(() => choose(any(['/wallet/v1/wallets', '/account/v1/nickname']))),
      ...Array.from({ length: 24 }, () => deliver),
    ]
    for (let step = 0; step < steps; step++) {
      await any(all)()
      if (random() < 0.5) await new Promise((done) => setTimeout(done))
      look('step')
    }
  }`

await test('whatever happens in which order, no commit shows the data of a session after that one', async (t) => {
  t.comment(`SEED=${SEED} RUNS=${RUNS}`)
  const dir = await reactApp(t, APP + STEPS, { options: SERVER })
  const page = await (await testChromium(t)).newPage()
  await page.route('**/*', (route) => {
    const { pathname } = new URL(route.request().url())
    return route.fulfill({ path: join(dir, pathname === '/' ? 'index.html' : pathname) })
  })
  await page.goto('http://localhost/')
  for (let run = 0; run < RUNS; run++) {
    await page.evaluate(`play(${SEED + run}, 120)`)
    const wrong = await page.evaluate<unknown[]>('wrong.slice(0, 3)')
    if (wrong.length > 0) return t.fail(`SEED=${SEED + run}: ${JSON.stringify(wrong)}`)
  }
  const marks = await page.evaluate<number>('marks')
  t.ok(marks > RUNS, `data was shown ${marks} times`)
  t.same(await page.evaluate('faults'), [])
})
