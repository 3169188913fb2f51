import { once } from 'node:events'
import { test } from 'tap'
import { WebSocketServer } from 'ws'
import { createClient, SocketError, type PublicSocket } from '../../client/dist/client.js'
import { TradingService } from '../support/client/trading-service.ts'
import { failure, pageClient, reaches } from '../support/client/page-client.ts'
import { logOut, relayWorld } from '../support/sockets/relay-world.ts'
import { until } from '../support/time/until.ts'
import { logIn, testServer } from '../support/server/world.ts'

const isOpen = (socket: PublicSocket): Promise<void> => until(() => socket.status().state === 'open', 'open')

const tick = (into: number[]) => (message: { tick: { quote: number } }) => void into.push(message.tick.quote)

await test('requests get their own replies, in whatever order these arrive', async (t) => {
  const world = await relayWorld(t)
  const service = new TradingService(world.upstream)
  const waiting: (() => void)[] = []
  service.intercept = (message, socket) => {
    if (!('time' in message)) return false
    waiting.push(() => socket.send(JSON.stringify({ req_id: message['req_id'], time: message['passthrough'] })))
    return true
  }
  const socket = pageClient(t, world.browser, world.server.url).publicSocket()
  const received: unknown[] = []
  socket.listen((message) => received.push(message['time']))
  const requests = [1, 2, 3].map((n) => socket.request({ time: 1, passthrough: { n } }))
  await until(() => waiting.length === 3)
  for (const reply of waiting.toReversed()) reply()
  t.match(await Promise.all(requests), [{ time: { n: 1 } }, { time: { n: 2 } }, { time: { n: 3 } }])
  t.match(received.filter(Boolean), [{ n: 3 }, { n: 2 }, { n: 1 }])
})

await test('a refused request rejects with the code of the trading service', async (t) => {
  const world = await relayWorld(t)
  const service = new TradingService(world.upstream)
  service.intercept = (message, socket) => {
    if (!('statement' in message)) return false
    socket.send(JSON.stringify({ req_id: message['req_id'], error: { code: 'RateLimit', message: 'slowly' } }))
    return true
  }
  const socket = pageClient(t, world.browser, world.server.url).publicSocket()
  const refused = socket.request({ statement: 1 })
  t.match(await failure(refused), {
    name: 'SocketError',
    code: 'RateLimit',
    message: 'slowly',
    outcome: undefined,
  })
})

await test('equal streams share a subscription, which is made once after a reconnect and forgotten at the end', async (t) => {
  const world = await relayWorld(t)
  const service = new TradingService(world.upstream)
  const socket = pageClient(t, world.browser, world.server.url).publicSocket()
  const received: Record<string, number[]> = { a: [], b: [], c: [] }
  const into = (name: string) => (message: { tick: { quote: number } }) => void received[name]?.push(message.tick.quote)
  const stops = [
    socket.subscribe({ ticks: 'R_100' }, into('a')),
    socket.subscribe({ ticks: 'R_50' }, into('b')),
    socket.subscribe({ ticks: 'R_100' }, into('c')),
  ]
  await until(() => received['a']?.length === 1 && received['b']?.length === 1 && received['c']?.length === 1)
  t.equal(service.count('ticks'), 2)
  service.tick(7)
  await until(() => received['a']?.at(-1) === 7 && received['c']?.at(-1) === 7)
  ;(await world.upstream.socket()).terminate()
  await until(() => service.streams === 2 && service.connections === 2)
  service.tick(8)
  await until(() => received['a']?.at(-1) === 8 && received['b']?.at(-1) === 8 && received['c']?.at(-1) === 8)
  t.equal(service.count('ticks', 2), 2)
  t.same(received['a'], [0, 7, 0, 8])
  for (const stop of stops) stop()
  await until(() => service.streams === 0)
  t.equal(service.count('forget', 2), 2)
})

await test('a later subscriber gets the first message of a stream, and nobody is subscribed twice', async (t) => {
  const world = await relayWorld(t)
  const service = new TradingService(world.upstream)
  const socket = pageClient(t, world.browser, world.server.url).publicSocket()
  const errors: string[] = []
  const first: number[] = []
  const later: number[] = []
  socket.subscribe({ ticks: 'R_100' }, tick(first), ({ code }) => errors.push(code))
  await until(() => first.length === 1)
  service.tick(1)
  await until(() => first.length === 2)
  socket.subscribe({ ticks: 'R_100' }, tick(later), ({ code }) => errors.push(code))
  await until(() => later.length === 1)
  service.tick(2)
  await until(() => later.length === 2 && first.length === 4)
  t.same(
    { first, later, errors, streams: service.streams },
    { first: [0, 1, 0, 2], later: [0, 2], errors: [], streams: 1 },
  )
})

await test('a stream that is stopped before its first message is forgotten when that arrives', async (t) => {
  const world = await relayWorld(t)
  const service = new TradingService(world.upstream)
  const withheld: (() => void)[] = []
  const socket = pageClient(t, world.browser, world.server.url).publicSocket()
  await isOpen(socket)
  service.intercept = (message, connection) => {
    if (!('ticks' in message)) return false
    const subscription = { id: 'late' }
    withheld.push(() =>
      connection.send(JSON.stringify({ req_id: message['req_id'], subscription, tick: { quote: 1 } })),
    )
    return true
  }
  socket.subscribe({ ticks: 'R_100' }, () => t.fail('it was stopped'))()
  await until(() => withheld.length === 1)
  await new Promise((resolve) => void setTimeout(resolve, 150))
  withheld[0]?.()
  await until(() => service.seen.some((message) => message['forget'] === 'late'))
})

await test('subscribe() throws for commands and unknown operations', async (t) => {
  const client = createClient({ baseUrl: 'http://127.0.0.1:9' })
  t.teardown(() => client.close())
  const socket = client.tradingSocket('VRTC100')
  t.throws(() => socket.subscribe({ buy: 'id', price: 10 }, () => undefined), TypeError)
  t.throws(() => socket.subscribe({ unknown_operation: 1 }, () => undefined), TypeError)
})

await test('a socket that is closed and opened again at once keeps the connection', async (t) => {
  const world = await relayWorld(t)
  const service = new TradingService(world.upstream)
  const client = pageClient(t, world.browser, world.server.url)
  client.publicSocket().close()
  const socket = client.publicSocket()
  await isOpen(socket)
  socket.close()
  const again = client.publicSocket()
  await again.request({ time: 1 })
  t.equal(service.connections, 1)
  again.close()
  await world.quiet()
})

await test('every promise settles after a timeout, an abort or close()', async (t) => {
  const world = await relayWorld(t)
  const service = new TradingService(world.upstream)
  service.intercept = (message) => !('ping' in message)
  const client = pageClient(t, world.browser, world.server.url)
  const socket = client.publicSocket()
  await isOpen(socket)
  const abort = new AbortController()
  const settled = Promise.allSettled([
    socket.request({ time: 1 }, { timeoutMs: 50 }),
    socket.request({ time: 1 }, { signal: abort.signal }),
    socket.request({ time: 1 }, { signal: AbortSignal.abort(new Error('from the start')) }),
    socket.request({ time: 1 }),
  ])
  abort.abort(new Error('no longer wanted'))
  await until(() => service.count('time') === 3)
  await new Promise((resolve) => void setTimeout(resolve, 100))
  socket.close()
  t.match(
    (await settled).map((each) => each.status === 'rejected' && (each.reason as Error)),
    [{ code: 'timeout' }, { message: 'no longer wanted' }, { message: 'from the start' }, { code: 'closed' }],
  )
  t.match(await failure(socket.request({ time: 1 })), { code: 'closed' })
})

await test('an unknown account ends the socket, its requests and its streams', async (t) => {
  const world = await relayWorld(t)
  world.upstream.onOtp = (_request, response) => response.writeHead(404).end()
  const socket = pageClient(t, world.browser, world.server.url).tradingSocket('VRTC100')
  const errors: SocketError[] = []
  socket.subscribe(
    { ticks: 'R_100' },
    () => undefined,
    (error) => errors.push(error),
  )
  t.match(await failure(socket.request({ time: 1 })), { code: 'ended', closeCode: 4404 })
  t.match(socket.status(), { state: 'ended', code: 4404, reason: 'not_found' })
  t.match(errors, [{ code: 'ended', closeCode: 4404 }])
  t.match(await failure(socket.request({ time: 1 })), { code: 'ended' })
  t.match(await failure(socket.command({ buy: 1 })), { code: 'not_sent' })
})

await test('after 4429, the socket waits for at least nine seconds', async (t) => {
  const world = await relayWorld(t)
  world.upstream.onOtp = (_request, response) => response.writeHead(429).end()
  const socket = pageClient(t, world.browser, world.server.url).tradingSocket('VRTC100')
  await until(() => socket.status().code === 4429 && socket.status().retryAt !== undefined)
  t.ok(Number(socket.status().retryAt) - Date.now() > 9000)
})

for (const [code, reason] of Object.entries({ 1013: 'upstream_lost', 4429: 'upstream_budget' })) {
  await test(`retry_after is obeyed after ${code}, and removed from the reason`, async (t) => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    t.teardown(() => server.close())
    const times: number[] = []
    server.on('connection', (socket) => {
      times.push(Date.now())
      socket.close(Number(code), `${reason};retry_after=2`)
    })
    const client = createClient({ baseUrl: `http://127.0.0.1:${(server.address() as { port: number }).port}` })
    t.teardown(() => client.close())
    const socket = client.publicSocket()
    await until(() => socket.status().reason === reason)
    t.ok(
      Number(socket.status().retryAt) - Date.now() < 4000,
      'the time that the server asks for replaces that of the code',
    )
    await until(() => times.length === 2)
    t.ok(Number(times[1]) - Number(times[0]) >= 2000)
  })
}

await test('a trading socket survives a new login and ends at the logout', async (t) => {
  const world = await relayWorld(t)
  const service = new TradingService(world.upstream)
  const client = pageClient(t, world.browser, world.server.url)
  const socket = client.tradingSocket('VRTC100')
  await isOpen(socket)
  await logIn(world.browser, world.server.url)
  await until(() => service.connections === 2 && socket.status().state === 'open')
  await logOut(world.browser)
  await until(() => socket.status().state === 'ended')
  t.match(socket.status(), { code: 4401, reason: 'session_expired' })
  t.equal(service.connections, 2)
})

await test('after a restart of the server, each stream is subscribed once', async (t) => {
  const world = await relayWorld(t)
  const service = new TradingService(world.upstream)
  const socket = pageClient(t, world.browser, world.server.url).publicSocket()
  const received: number[] = []
  for (const symbol of ['R_10', 'R_25', 'R_50']) socket.subscribe({ ticks: symbol }, tick(received))
  await until(() => received.length === 3)
  const waits = reaches(socket, 'waiting')
  await world.server.close()
  await waits
  const meanwhile = socket.request({ time: 1 }, { timeoutMs: 60_000 })
  await testServer(t, { ...world.settings, PORT: String(world.server.port) })
  t.match(await meanwhile, { ok: true })
  await until(() => service.streams === 3)
  t.equal(service.count('ticks', service.connections), 3)
})
