import { setTimeout as pause } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { SocketError } from '../../client/dist/client.js'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { failure, reaches } from '../support/client/page-client.ts'
import { tradingPage } from '../support/client/trading-page.ts'
import { untyped } from '../support/client/untyped.ts'
import { until } from '../support/time/until.ts'

const BUY = { buy: 'a-proposal', price: 10 }

/** A trading socket that has just received a reply. */
async function openSocket(t: Test) {
  const { client, service } = await tradingPage(t)
  const socket = client.tradingSocket('VRTC100')
  await socket.request({ time: 1 })
  return { service, socket }
}

await test('a command is sent at once on a connection that has just received a message', async (t) => {
  const { service, socket } = await openSocket(t)
  const { pings } = service
  t.match(await socket.command(BUY), { ok: true })
  t.same([service.count('buy'), service.pings], [1, pings])
})

await test('after three seconds of silence, a command is sent once a ping has had its reply', async (t) => {
  const pass = timeAhead(t)
  const { service, socket } = await openSocket(t)
  pass(3200)
  const { pings } = service
  await socket.command(BUY)
  t.same([service.count('buy'), service.pings], [1, pings + 1])
})

await test('a command is not sent if its page reads the reply to the ping only after the machine has slept, whichever way its clock is set', async (t) => {
  const looks = new HeldTimers(t, 'setInterval', 1000)
  const pass = timeAhead(t)
  for (const sleptMs of [60_000, -60_000]) {
    const { service, socket } = await openSocket(t)
    pass(3200)
    service.instead['ping'] = (_message, reply) => {
      pass(sleptMs)
      reply({ msg_type: 'ping', ping: 'pong' })
    }
    t.match(await failure(socket.command(BUY)), { code: 'not_sent', outcome: undefined })
    t.equal(service.count('buy'), 0)
  }
  t.equal(looks.size, 1, 'the connection has not looked at the clock before the command did')
})

await test('a command is never kept for later, neither while the socket connects nor after the connection is lost', async (t) => {
  const { client, service, world } = await tradingPage(t)
  const socket = client.tradingSocket('VRTC100')
  t.match(await failure(socket.command(BUY)), { code: 'not_sent' })
  // request() treats commands and unknown operations in the same way.
  t.match(await failure(socket.request(BUY)), { code: 'not_sent' })
  t.match(await failure(untyped(socket).request({ unknown_operation: 1 })), { code: 'not_sent' })
  await socket.request({ time: 1 })
  const upstream = await world.upstream.socket()
  const waits = reaches(socket, 'waiting')
  upstream.terminate()
  await waits
  t.match(await failure(socket.command(BUY)), { code: 'not_sent' })
  await socket.request({ time: 1 })
  await pause(100)
  t.same([service.count('buy'), service.count('unknown_operation')], [0, 0])
})

await test('a command that is aborted or times out has an unknown outcome, and listen() receives a late reply', async (t) => {
  const { service, socket } = await openSocket(t)
  const late: (() => void)[] = []
  service.instead['buy'] = (_message, reply) => late.push(() => reply({ buy: { contract_id: 7 } }))
  const received: unknown[] = []
  socket.listen((message) => 'buy' in message && received.push(message['buy']))
  const abort = new AbortController()
  const aborted = socket.command(BUY, { signal: abort.signal })
  const timedOut = socket.command(BUY, { timeoutMs: 100 })
  abort.abort()
  t.match(await failure(aborted), { code: 'aborted', outcome: 'unknown' })
  t.match(await failure(timedOut), { code: 'timeout', outcome: 'unknown' })
  t.match(await failure(socket.command(BUY, { signal: abort.signal })), { name: 'AbortError' })
  await until(() => late.length === 2)
  for (const reply of late) reply()
  await until(() => received.length === 2)
})

await test('on two hundred connections that are lost with a command in flight, each outcome is unknown and no command arrives twice', async (t) => {
  const ACCOUNTS = 100
  const ROUNDS = 2
  const { client, service } = await tradingPage(t, { MAX_RELAYS_PER_SESSION: String(ACCOUNTS) })
  service.instead['buy'] = (_message, _reply, socket) => socket.terminate()
  const outcomes: unknown[] = []
  const sockets = Array.from({ length: ACCOUNTS }, (_, n) => client.tradingSocket(`VRTC${n}`))
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(
      sockets.map(async (socket, n) => {
        await until(() => socket.status().state === 'open', 'open')
        const error = await socket.command({ buy: `${round}/${n}`, price: 10 }).catch((reason: unknown) => reason)
        outcomes.push(error instanceof SocketError && `${error.code} ${error.outcome}`)
      }),
    )
  }
  t.equal(outcomes.length, 200)
  t.same(new Set(outcomes), new Set(['connection_lost unknown']))
  await pause(500)
  const seen = service.seen.filter((message) => 'buy' in message).map(({ buy }) => buy)
  t.same([new Set(seen).size, seen.length], [200, 200])
})

await test('a connection that does not reply to pings becomes stale, then reconnects', async (t) => {
  const second = new HeldTimers(t, 'setInterval', 1000)
  const pass = timeAhead(t)
  const { client, service } = await tradingPage(t)
  const socket = client.publicSocket()
  await until(() => socket.status().state === 'open')
  // A message ends the delays that other tests of this process have caused.
  await socket.request({ time: 1 })
  const states: string[] = []
  socket.onStatus(() => states.push(socket.status().state))
  /** Lets seconds pass until the test is over, and counts them. */
  const secondsUntil = async (isOver: () => boolean): Promise<number> => {
    for (let seconds = 1; seconds < 60; seconds++) {
      pass(1000)
      second.run()
      await pause(20)
      if (isOver()) return seconds
    }
    return Infinity
  }
  service.isMute = true
  const { pings } = service
  const silence = await secondsUntil(() => service.pings > pings)
  t.ok(silence >= 10 && silence <= 14, `a ping after ${silence} s of silence`)
  t.ok((await secondsUntil(() => socket.status().state === 'stale')) <= 5, 'stale 4 s after the ping')
  t.ok((await secondsUntil(() => states.includes('waiting'))) <= 5, 'lost 4 s after the second ping')
  service.isMute = false
  await until(() => socket.status().state === 'open')
  t.same(states.slice(0, 2), ['stale', 'waiting'])
})
