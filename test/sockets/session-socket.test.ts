import type { Socket } from 'node:net'
import { test } from 'tap'
import { Sessions } from '../../src/sessions/index.ts'
import { rawBrowser } from '../support/browser/raw-browser.ts'
import { scripted, tokens } from '../support/login/token-endpoint.ts'
import { waitingOn } from '../support/feed/started-member.ts'
import { closeCode, frame } from '../support/sockets/raw-frames.ts'
import { EXPIRED, SESSION, eventsOf, listening, use } from '../support/sockets/session-socket.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { startWorld, RELAY } from '../support/world.ts'
import { nodeWarnings } from '../support/telemetry/node-warnings.ts'

await test('GET /ws/session: the state of the session first, and 4401 login_required without one', async (t) => {
  const world = await startWorld(t, { upstream: 'scripted' })
  t.same(await world.socket(SESSION).closed, { code: 4401, reason: 'login_required' })
  await world.logIn()
  const client = await listening(world)
  const state = (await (await use(world, 'GET')).json()) as object & { now: number }
  const [{ event, now, ...pushed } = {}] = eventsOf(client)
  const { now: _, ...asked } = state
  t.equal(event, 'session')
  t.same(pushed, asked, 'it says what GET /auth/session says')
  t.type(now, 'number')
  t.equal((await world.metric('bff_relays')).get('kind="session"'), 1)
  client.socket.close(1000)
  t.same(await client.closed, { code: 1000, reason: '' })
  await world.quiet()
  t.equal(world.upstream.upgrades.length, 0, 'it opens nothing upstream')
})

for (const redis of [false, true]) {
  await test(`POST /auth/logout ends every session socket with the reason (${redis ? 'Redis, two instances' : 'memory'})`, async (t) => {
    const world = await startWorld(t, { ...RELAY, redis })
    const ports = redis ? [world.server.port, (await world.instance()).port] : [world.server.port]
    const clients = await Promise.all(ports.map((port) => listening(world, port)))
    t.equal((await world.logOut()).status, 204)
    for (const client of clients) {
      t.same(await client.closed, EXPIRED)
      t.same(eventsOf(client).at(-1), { event: 'ended', reason: 'logout' })
    }
    await world.quiet()
  })
}

await test('a new login ends the session sockets of the old session with the reason replaced, on every instance', async (t) => {
  const world = await startWorld(t, { ...RELAY, redis: true })
  const other = await world.instance()
  const clients = await Promise.all([listening(world), listening(world, other.port)])
  await world.logIn()
  for (const client of clients) {
    t.same(await client.closed, EXPIRED)
    t.same(eventsOf(client).at(-1), { event: 'ended', reason: 'replaced' })
  }
})

await test('POST /auth/session: 401 without a session, 403 without X-CSRF, and a preflight that allows it', async (t) => {
  const world = await startWorld(t, { upstream: 'scripted' })
  world.browser.page = new URL(world.server.url)
  const anonymous = await use(world)
  t.equal(anonymous.status, 401)
  t.match(await anonymous.json(), { code: 'login_required', login_url: `${world.server.url}/auth/login` })
  const foreign = await world.browser.fetch('/auth/session', { method: 'POST' })
  t.equal(foreign.status, 403)
  const preflight = await fetch(`${world.server.url}/auth/session`, {
    method: 'OPTIONS',
    headers: { origin: world.server.url, 'access-control-request-method': 'POST' },
  })
  t.equal(preflight.headers.get('access-control-allow-methods'), 'GET, POST')
})

await test('MAX_SESSION_SOCKETS and PUBLIC_HANDSHAKES_PER_MINUTE limit session sockets with 4429', async (t) => {
  const settings = { MAX_SESSION_SOCKETS: '2', PUBLIC_HANDSHAKES_PER_MINUTE: '4' }
  const world = await startWorld(t, { ...RELAY, settings })
  const first = await listening(world)
  await listening(world)
  t.same(await world.socket(SESSION).closed, { code: 4429, reason: 'too_many_relays' })
  first.socket.close()
  await first.closed
  await until(async () => (await world.metric('bff_relays')).get('kind="session"') === 1)
  await listening(world)
  const { code, reason } = await world.socket(SESSION).closed
  t.equal(code, 4429)
  t.match(reason, /^rate_limited;retry_after=([1-9]|[1-5][0-9]|60)$/)
})

await test('a browser may send a session socket ten short messages a minute; beyond that it is closed with 1008', async (t) => {
  const world = await startWorld(t, RELAY)
  const policy = { code: 1008, reason: '' }
  const talker = await listening(world)
  for (let count = 0; count < 10; count++) talker.socket.send('x'.repeat(1024))
  talker.socket.ping()
  await new Promise((resolve) => talker.socket.once('pong', resolve))
  t.equal(talker.socket.readyState, talker.socket.OPEN)
  talker.socket.send('one more')
  t.same(await talker.closed, policy)
  for (const bytes of [1025, 65_537]) {
    const long = await listening(world)
    long.socket.send('x'.repeat(bytes))
    t.same(await long.closed, policy, `${bytes} bytes`)
  }
  await world.quiet()
})

await test('a session socket of which a page has more than 64 KiB to read closes with 4408', async (t) => {
  const world = await startWorld(t, RELAY)
  const upgraded = nextEvent(world.server.app.server.server, 'upgrade')
  const client = await listening(world)
  const [, wire] = (await upgraded) as [unknown, Socket]
  waitingOn(wire, 65_537)
  t.equal((await use(world)).status, 204, 'the page is to be told of the new limit')
  t.same(await client.closed, { code: 4408, reason: 'slow_consumer' })
})

await test('a session socket of a session of thirty days sets no timer that Node would end at once', async (t) => {
  const warnings = nodeWarnings(t)
  const settings = { SESSION_MAX_SECONDS: '2592000', SESSION_IDLE_SECONDS: '2592000' }
  const world = await startWorld(t, { upstream: 'scripted', provider: scripted, settings })
  world.provider.behaviour = tokens({ expires_in: 2_592_000 })
  await world.logIn()
  await listening(world)
  // Node warns in a later turn.
  await use(world, 'GET')
  t.same(warnings, [])
})

await test('nothing watches a session for a session socket that is closed', async (t) => {
  // oxlint-disable-next-line typescript/unbound-method -- it is applied to its object
  const { watch } = Sessions.prototype
  let watches = 0
  const value = function (this: Sessions, ...args: Parameters<Sessions['watch']>): () => void {
    watches++
    const end = watch.apply(this, args)
    return () => {
      watches--
      end()
    }
  }
  t.intercept(Sessions.prototype, 'watch', { value })
  const client = await listening(await startWorld(t, RELAY))
  t.equal(watches, 1)
  client.socket.close()
  await until(() => watches === 0)
})

await test('pings inside an unfinished message end a session socket with 1008, and nothing more is read from it', async (t) => {
  const world = await startWorld(t, RELAY)
  const { port, url: publicUrl } = world.server
  const cookie = world.browser.cookieHeader(new URL(publicUrl), new URL(publicUrl))
  const browser = await rawBrowser({ port, publicUrl, path: SESSION, cookie })
  t.teardown(() => browser.destroy())
  const received: Buffer[] = []
  browser.on('data', (bytes: Buffer) => received.push(bytes))
  const ended = nextEvent(browser, 'end')
  const ping = frame({ opcode: 9, payload: Buffer.alloc(125), masked: true })
  browser.write(frame({ opcode: 1, payload: 'x', fin: false, masked: true }))
  browser.write(Buffer.concat(Array<Buffer>(600).fill(ping)))
  // This browser never answers the close frame.
  await ended
  const bytes = Buffer.concat(received)
  t.equal(closeCode(bytes.subarray(bytes.lastIndexOf(Buffer.from([0x88, 2])))), 1008)
  await world.quiet()
})

await test('a session socket closes with 1012 at a shutdown, and with 1013 when the store stays away', async (t) => {
  const world = await startWorld(t, { ...RELAY, redis: true, settings: { RELAY_STORE_GRACE_SECONDS: '1' } })
  const other = await world.instance()
  const draining = await listening(world, other.port)
  void other.close()
  t.same(await draining.closed, { code: 1012, reason: 'shutting_down' })
  const client = await listening(world)
  await world.redis?.close()
  t.same(await client.closed, { code: 1013, reason: 'session_store_unavailable' })
  t.notOk(
    eventsOf(client).some(({ event }) => event === 'ended'),
    'nobody knows whether the session has ended',
  )
})
