import { test } from 'tap'
import { makeOnce, noteCall } from '../../client/src/core/api/order.ts'
import { ApiError, SocketError } from '../../client/src/core/base/errors.ts'
import { errorOf, isCommand } from '../../client/src/core/sockets/exchange.ts'
import { exchangeOn } from '../support/client/exchange-on.ts'
import { failure } from '../support/client/page-client.ts'
import { replace } from '../support/time/replace.ts'

const READ = { balance: 1 }
const SELL = { sell: 7, price: 1 }

await test('a message is a command unless it names an operation that reads, and none that changes something', (t) => {
  for (const message of [{ buy: 'x' }, { ticks: 'R_1', sell: 1 }, { tick: 1 }, {}, { unknown: 1 }]) {
    t.equal(isCommand(message), true, JSON.stringify(message))
  }
  for (const message of [{ ticks: 'R_1' }, { passthrough: {}, balance: 1 }, { ping: 1 }]) {
    t.equal(isCommand(message), false, JSON.stringify(message))
  }
  t.end()
})

await test('errorOf() is the error that a message carries, with the whole message', (t) => {
  const reply = { error: { code: 'Busy', message: 'later' } }
  t.match(errorOf(reply), { code: 'Busy', message: 'later', reply })
  t.equal(errorOf({ error: { code: 'Busy' } })?.message, '')
  t.equal(errorOf({ tick: 1 }), undefined)
  t.end()
})

await test('a message gets the reply with its req_id, once, and its timer and listener end with it', async (t) => {
  const { exchange, link, timers } = exchangeOn(t)
  const own = new AbortController()
  const listening: string[] = []
  replace(t, own.signal, 'addEventListener', (name: string) => listening.push(`on ${name}`))
  replace(t, own.signal, 'removeEventListener', (name: string) => listening.push(`off ${name}`))
  const first = exchange.request(READ, { signal: own.signal })
  const second = exchange.request({ ticks: 'R_1' })
  t.same(link.sent, [
    { balance: 1, req_id: 1 },
    { ticks: 'R_1', req_id: 2 },
  ])
  t.equal(timers.delays.length, 2)
  t.equal(exchange.take({ req_id: 3 }), false)
  t.equal(exchange.take({}), false)
  t.equal(exchange.take({ req_id: 2, tick: 5 }), true)
  t.equal(exchange.take({ req_id: '1', balance: 9 }), true)
  t.same(await first, { req_id: '1', balance: 9 })
  t.same(await second, { req_id: 2, tick: 5 })
  t.same(listening, ['on abort', 'off abort'])
  t.same(timers.delays, [])
  t.equal(exchange.take({ req_id: 2 }), false, 'it waits no more')
  const refused = failure(exchange.request(READ))
  t.equal(exchange.take({ req_id: 3, error: { code: 'Busy', message: 'later' } }), true)
  t.match(await refused, { code: 'Busy', outcome: undefined })
})

await test('request() notes the time of a reply to a question for it, and when it was asked, and nothing else', async (t) => {
  const { exchange, link, noted } = exchangeOn(t)
  replace(t, performance, 'now', () => 1234)
  for (const [message, reply] of [
    [{ time: 1 }, { time: 77 }],
    [{ time: 1 }, { time: '78' }],
    [{ balance: 1 }, { time: 79 }],
  ] as const) {
    const asked = exchange.request(message)
    exchange.take({ ...reply, req_id: link.sent.at(-1)?.['req_id'] })
    await asked
  }
  t.same(noted, [[77, 1234]])
})

await test('a request on a connection that is not up, or that is stale, is sent once when one works', async (t) => {
  for (const status of [{ isUp: false }, { status: { state: 'stale' } }] as const) {
    const { exchange, link } = exchangeOn(t)
    Object.assign(link, status)
    void failure(exchange.request(READ))
    t.same(link.sent, [])
    exchange.up()
    exchange.up()
    t.same(link.sent, [{ balance: 1, req_id: 1 }])
  }
})

await test('a command whose connection is gone when it would be sent is not sent on the next one', async (t) => {
  const { exchange, link } = exchangeOn(t)
  let looks = 0
  Object.defineProperty(link, 'isUp', { get: () => looks++ === 0 })
  void failure(exchange.command(SELL))
  exchange.up()
  t.same(link.sent, [])
  t.equal(looks, 2)
})

await test('what was sent on a connection that is lost fails, and what was not sent waits', async (t) => {
  const { exchange, link } = exchangeOn(t)
  const sent = failure(exchange.request(READ))
  const command = failure(exchange.command({ buy: 'x' }))
  link.isUp = false
  let isOver = false
  const waits = failure(exchange.request(READ)).finally(() => (isOver = true))
  exchange.down({ state: 'waiting' })
  const lost = { code: 'connection_lost', message: 'the connection closed: 1006 ', closeCode: 1006 }
  t.match(await sent, { ...lost, outcome: undefined, order: undefined })
  t.match(await command, { ...lost, outcome: 'unknown', order: { message: { buy: 'x', req_id: 2 } } })
  t.notOk(isOver)
  exchange.down({ state: 'ended', code: 4403, reason: 'forbidden' })
  t.match(await waits, { code: 'ended', message: 'the connection closed: 4403 forbidden', closeCode: 4403 })
})

await test('a request on a connection that was refused waits for the next, and a command is lost', async (t) => {
  const { exchange, link } = exchangeOn(t)
  void failure(exchange.request(READ))
  const command = failure(exchange.command(SELL))
  link.isProven = false
  exchange.down({ state: 'waiting', code: 4429 })
  t.match(await command, { code: 'connection_lost', closeCode: 4429, outcome: 'unknown' })
  link.sent.length = 0
  exchange.up()
  t.same(link.sent, [{ balance: 1, req_id: 1 }])
})

await test('a message that nothing answers fails after its time, with the outcome of a command unknown', async (t) => {
  const { exchange, timers } = exchangeOn(t)
  for (const [message, options, ms] of [
    [READ, {}, 15_000],
    [SELL, {}, 30_000],
    [READ, { timeoutMs: 70 }, 70],
    [SELL, { timeoutMs: Infinity }, 2_147_483_647],
  ] as const) {
    const late = failure(exchange.request(message, options))
    t.same(timers.delays, [ms])
    timers.run()
    const outcome = message === SELL ? 'unknown' : undefined
    t.match(await late, { code: 'timeout', message: 'no reply in time', outcome })
  }
})

await test('a message of an aborted signal is not sent, and one that is aborted later fails with the reason', async (t) => {
  const reason = new Error('left')
  const closed = new SocketError('closed', 'the socket was closed')
  const { exchange, link } = exchangeOn(t)
  for (const message of [READ, SELL]) {
    t.equal(await failure(exchange.request(message, { signal: AbortSignal.abort(reason) })), reason)
  }
  t.same(link.sent, [])
  for (const [message, cause, expected] of [
    [READ, reason, reason],
    [READ, closed, closed],
    [SELL, reason, { code: 'aborted', message: 'aborted', cause: reason, outcome: 'unknown' }],
    [SELL, closed, { code: 'closed', cause: closed, outcome: 'unknown' }],
  ] as const) {
    const own = new AbortController()
    const aborted = failure(exchange.request(message, { signal: own.signal }))
    own.abort(cause)
    if (message === READ) t.equal(await aborted, expected)
    else t.match(await aborted, expected)
  }
})

await test('on a connection that has ended, a request fails with its close code, and a command is not sent', async (t) => {
  const { exchange, link } = exchangeOn(t)
  link.status = { state: 'ended', code: 4404 }
  t.match(await failure(exchange.request(READ)), {
    code: 'ended',
    message: 'the connection has ended',
    closeCode: 4404,
  })
  t.match(await failure(exchange.command(SELL)), { code: 'not_sent', message: 'not sent: the connection is ended' })
  t.same(link.sent, [])
})

await test('a command is not sent unless the connection is open and up', async (t) => {
  const { exchange, link } = exchangeOn(t)
  for (const status of [{ state: 'stale' }, { state: 'waiting' }] as const) {
    link.status = status
    t.match(await failure(exchange.command(SELL)), { message: `not sent: the connection is ${status.state}` })
  }
  Object.assign(link, { status: { state: 'open' }, isUp: false })
  t.match(await failure(exchange.command(SELL)), { code: 'not_sent', message: 'not sent: the connection is open' })
  t.same(link.sent, [])
})

await test('an order that once() repeats learns that a command was sent beside it', async (t) => {
  const { exchange } = exchangeOn(t)
  const order = async (key: string): Promise<never> => {
    noteCall(key, 'POST /orders')
    void failure(exchange.command(SELL))
    throw new ApiError('POST', '/orders')
  }
  const detail = 'not repeated: a command was sent without the idempotencyKey of once()'
  t.match(await failure(makeOnce(order, () => false)), { outcome: 'unknown', detail })
})
