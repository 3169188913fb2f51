import { test } from 'tap'
import { SocketError } from '../../client/dist/client.js'
import { Answering } from '../support/answering.ts'
import { failure, pageClient } from '../support/page-client.ts'
import { relayWorld } from '../support/relay-world.ts'
import { until } from '../support/until.ts'

const BUY = { buy: 'a-proposal', price: 10 }
const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))

await test('a command on a connection that has just spoken is sent at once', async (t) => {
  const world = await relayWorld(t)
  const service = new Answering(world.upstream)
  const socket = pageClient(t, world.browser, world.server.url).tradingSocket('VRTC100')
  await socket.request({ time: 1 })
  const { pings } = service
  t.match(await socket.command(BUY), { ok: true })
  t.same([service.count('buy'), service.pings], [1, pings])
})

await test('after three seconds of silence it is sent when a ping was answered', async (t) => {
  const world = await relayWorld(t)
  const service = new Answering(world.upstream)
  const socket = pageClient(t, world.browser, world.server.url).tradingSocket('VRTC100')
  await socket.request({ time: 1 })
  await pause(3200)
  const { pings } = service
  await socket.command(BUY)
  t.same([service.count('buy'), service.pings], [1, pings + 1])
})

await test('after three seconds of silence it is not sent when no ping was answered, and never later', async (t) => {
  const world = await relayWorld(t)
  const service = new Answering(world.upstream)
  const socket = pageClient(t, world.browser, world.server.url).tradingSocket('VRTC100')
  await socket.request({ time: 1 })
  service.isMute = true
  await pause(3200)
  const started = Date.now()
  t.match(await failure(socket.command(BUY)), { name: 'SocketError', code: 'not_sent', outcome: undefined })
  t.ok(Date.now() - started < 1500)
  service.isMute = false
  await socket.request({ time: 1 })
  await pause(300)
  t.equal(service.count('buy'), 0)
})

await test('it is not kept for later: not while it connects, not after the connection went', async (t) => {
  const world = await relayWorld(t)
  const service = new Answering(world.upstream)
  const socket = pageClient(t, world.browser, world.server.url).tradingSocket('VRTC100')
  t.match(await failure(socket.command(BUY)), { code: 'not_sent' })
  // Also under the name of a request, also when nobody has heard of the operation.
  t.match(await failure(socket.request(BUY)), { code: 'not_sent' })
  t.match(await failure(socket.request({ unheard_of: 1 })), { code: 'not_sent' })
  await socket.request({ time: 1 })
  ;(await world.upstream.socket()).terminate()
  await until(() => socket.status().state !== 'open')
  t.match(await failure(socket.command(BUY)), { code: 'not_sent' })
  await socket.request({ time: 1 })
  await pause(100)
  t.same([service.count('buy'), service.count('unheard_of')], [0, 0])
})

await test('aborted or timed out after it was sent: unknown, and a late answer is still heard', async (t) => {
  const world = await relayWorld(t)
  const service = new Answering(world.upstream)
  const late: (() => void)[] = []
  service.intercept = (message, socket) => {
    if (!('buy' in message)) return false
    late.push(() => socket.send(JSON.stringify({ req_id: message['req_id'], buy: { contract_id: 7 } })))
    return true
  }
  const socket = pageClient(t, world.browser, world.server.url).tradingSocket('VRTC100')
  const heard: unknown[] = []
  socket.listen((message) => 'buy' in message && heard.push(message['buy']))
  await socket.request({ time: 1 })
  const abort = new AbortController()
  const aborted = socket.command(BUY, { signal: abort.signal })
  const timedOut = socket.command(BUY, { timeoutMs: 100 })
  abort.abort()
  t.match(await failure(aborted), { code: 'aborted', outcome: 'unknown' })
  t.match(await failure(timedOut), { code: 'timeout', outcome: 'unknown' })
  t.match(await failure(socket.command(BUY, { signal: abort.signal })), { name: 'AbortError' })
  await until(() => late.length === 2)
  for (const answer of late) answer()
  await until(() => heard.length === 2)
})

await test('two hundred connections that die with a command in flight: unknown each time, seen once at most', async (t) => {
  const ACCOUNTS = 20
  const ROUNDS = 10
  const world = await relayWorld(t, { settings: { MAX_RELAYS_PER_SESSION: '50' } })
  const service = new Answering(world.upstream)
  service.intercept = (message, socket) => {
    if (!('buy' in message)) return false
    socket.terminate()
    return true
  }
  const client = pageClient(t, world.browser, world.server.url)
  const outcomes: unknown[] = []
  const sockets = Array.from({ length: ACCOUNTS }, (_, n) => client.tradingSocket(`VRTC${n}`))
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(
      sockets.map(async (socket, n) => {
        await until(() => socket.status().state === 'open', 'open')
        const error = await socket
          .command({ buy: `${round}/${n}`, price: 10 })
          .catch((reason: unknown) => reason)
        outcomes.push(error instanceof SocketError && `${error.code} ${error.outcome}`)
      }),
    )
  }
  t.equal(outcomes.length, 200)
  t.same(new Set(outcomes), new Set(['connection_lost unknown']))
  await pause(500)
  const seen = service.seen.filter((message) => 'buy' in message).map(({ buy }) => buy)
  t.equal(new Set(seen).size, seen.length)
})
