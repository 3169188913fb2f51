import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import type { PublicSocket, SocketError } from '../../client/dist/client.js'
import { failure } from '../support/client/page-client.ts'
import { socketPeer } from '../support/client/socket-peer.ts'
import { tradingPage } from '../support/client/trading-page.ts'
import { until } from '../support/time/until.ts'
import { untyped } from '../support/client/untyped.ts'
import { exactly } from '../support/exactly.ts'

const isOpen = (socket: PublicSocket): Promise<void> => until(() => socket.status().state === 'open', 'open')

const tick = (into: number[]) => (message: { tick: { quote: number } }) => void into.push(message.tick.quote)

await test('requests get their own replies, in whatever order these arrive', async (t) => {
  const { client, service } = await tradingPage(t)
  const waiting: (() => void)[] = []
  service.instead['time'] = (message, reply) => waiting.push(() => reply({ time: message['passthrough'] }))
  const socket = client.publicSocket()
  const received: unknown[] = []
  socket.listen((message) => received.push(message['time']))
  const requests = [1, 2, 3].map((n) => socket.request({ time: 1, passthrough: { n } }))
  await until(() => waiting.length === 3)
  for (const reply of waiting.toReversed()) reply()
  t.match(await Promise.all(requests), [{ time: { n: 1 } }, { time: { n: 2 } }, { time: { n: 3 } }])
  t.match(received.filter(Boolean), exactly({ n: 3 }, { n: 2 }, { n: 1 }))
})

await test('a later subscriber gets the first message of a stream, and no subscription is made twice', async (t) => {
  const { client, service } = await tradingPage(t)
  const socket = client.publicSocket()
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
  const { client, service } = await tradingPage(t)
  const withheld: (() => void)[] = []
  const socket = client.publicSocket()
  await isOpen(socket)
  const late = { subscription: { id: 'late' }, tick: { quote: 1 } }
  service.instead['ticks'] = (_message, reply) => withheld.push(() => reply(late))
  socket.subscribe({ ticks: 'R_100' }, () => t.fail('it was stopped'))()
  await until(() => withheld.length === 1)
  await pause(150)
  withheld[0]?.()
  await until(() => service.seen.some((message) => message['forget'] === 'late'))
})

await test('a socket that is closed and opened again at once keeps the connection', async (t) => {
  const { client, service, world } = await tradingPage(t)
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
  const { client, service } = await tradingPage(t)
  service.instead['time'] = () => undefined
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
  await pause(100)
  socket.close()
  t.match(
    (await settled).map((each) => each.status === 'rejected' && (each.reason as Error)),
    exactly({ code: 'timeout' }, { message: 'no longer wanted' }, { message: 'from the start' }, { code: 'closed' }),
  )
  t.match(await failure(socket.request({ time: 1 })), { code: 'closed' })
})

await test('an unknown account ends the socket, its requests and its streams', async (t) => {
  const { client, world } = await tradingPage(t)
  world.upstream.onOtp = (_request, response) => response.writeHead(404).end()
  const socket = client.tradingSocket('VRTC100')
  const errors: SocketError[] = []
  socket.subscribe(
    { ticks: 'R_100' },
    () => undefined,
    (error) => errors.push(error),
  )
  t.match(await failure(socket.request({ time: 1 })), { code: 'ended', closeCode: 4404 })
  t.match(socket.status(), { state: 'ended', code: 4404, reason: 'not_found' })
  t.match(errors, exactly({ code: 'ended', closeCode: 4404 }))
  t.match(await failure(socket.request({ time: 1 })), { code: 'ended' })
  t.match(await failure(untyped(socket).command({ buy: 1 })), { code: 'not_sent' })
})

await test('after 4429, the socket waits for at least nine seconds', async (t) => {
  const { client, world } = await tradingPage(t)
  world.upstream.onOtp = (_request, response) => response.writeHead(429).end()
  const socket = client.tradingSocket('VRTC100')
  await until(() => socket.status().code === 4429 && socket.status().retryAt !== undefined)
  t.ok(Number(socket.status().retryAt) - Date.now() > 9000)
})

for (const [code, reason] of Object.entries({ 1013: 'upstream_lost', 4429: 'upstream_budget' })) {
  await test(`retry_after is obeyed after ${code}, and removed from the reason`, async (t) => {
    const world = await socketPeer(t)
    const times: number[] = []
    world.onSocket = (socket) => {
      times.push(Date.now())
      socket.close(Number(code), `${reason};retry_after=2`)
    }
    const socket = world.client.publicSocket()
    await until(() => socket.status().reason === reason)
    t.ok(
      Number(socket.status().retryAt) - Date.now() < 4000,
      'the time that the server asks for replaces that of the code',
    )
    await until(() => times.length === 2)
    t.ok(Number(times[1]) - Number(times[0]) >= 2000)
  })
}
