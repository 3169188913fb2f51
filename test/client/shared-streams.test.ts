import { test } from 'tap'
import { streamsOn } from '../support/client/streams-on.ts'
import { reports } from '../support/client/page-client.ts'

const TICKS = { ticks: 'R_1' }
const ALREADY = { code: 'AlreadySubscribed', message: '' }

await test('equal messages share one subscription, in whatever order their members are, and others have their own', (t) => {
  const { subscribe, take, sent } = streamsOn(t)
  const history = { ticks_history: 'R_1', count: 5, style: 'ticks' }
  const first = subscribe(history, 'first')
  const second = subscribe({ style: 'ticks', req_id: 77, count: 5, subscribe: 0, ticks_history: 'R_1' }, 'second')
  const other = subscribe({ ...history, count: 6 })
  t.same(sent(), [
    { ...history, subscribe: 1, req_id: 1 },
    { ...history, count: 6, subscribe: 1, req_id: 2 },
  ])
  take({ req_id: 1, history: {} })
  take({ req_id: 3 })
  t.same(first.seen, [{ name: 'first', req_id: 1, history: {} }])
  t.same(second.seen, [{ name: 'second', req_id: 1, history: {} }])
  t.same(other.seen, [])
  t.end()
})

await test('the message of a stream is copied, and none that may change something is taken', (t) => {
  const { subscribe, sent, streams, linkAt } = streamsOn(t)
  const message = { ticks: 'R_1' }
  subscribe(message)
  message.ticks = 'R_2'
  sent()
  streams.up(linkAt(0).real)
  t.same(sent(), [{ ticks: 'R_1', subscribe: 1, req_id: 2 }])
  const refusal = new TypeError('only reads can be subscribed to')
  t.throws(() => subscribe({ sell: 1 }), refusal)
  t.same(sent(), [])
  t.end()
})

await test('a subscriber that comes after the first message has the stream requested again, and the former one forgotten', (t) => {
  const { subscribe, take, sent } = streamsOn(t)
  const { seen } = subscribe(TICKS)
  take({ req_id: 1, subscription: { id: 'one' } })
  sent()
  subscribe(TICKS)
  t.same(sent(), [
    { forget: 'one', req_id: 2 },
    { ticks: 'R_1', subscribe: 1, req_id: 3 },
  ])
  take({ req_id: 1 })
  t.equal(seen.length, 1, 'what comes late of the former one is dropped')
  take({ req_id: 3 })
  t.equal(seen.length, 2)
  t.end()
})

await test('a stream is forgotten 100 ms after its last subscriber has stopped, unless another one comes meanwhile', (t) => {
  const { subscribe, take, sent, timers } = streamsOn(t)
  const one = subscribe(TICKS)
  const two = subscribe(TICKS)
  take({ req_id: 1, subscription: { id: 'one' } })
  sent()
  one.stop()
  one.stop()
  t.same(timers.delays, [], 'there is another one')
  two.stop()
  two.stop()
  t.same(timers.delays, [100])
  const three = subscribe(TICKS)
  timers.run()
  t.same(sent(), [
    { forget: 'one', req_id: 2 },
    { ticks: 'R_1', subscribe: 1, req_id: 3 },
  ])
  take({ req_id: 3, subscription: { id: 'two' } })
  t.equal(three.seen.length, 1)
  three.stop()
  t.same(sent(), [])
  timers.run()
  t.same(sent(), [{ forget: 'two', req_id: 4 }])
  t.same(timers.delays, [], 'the first link stays')
  subscribe(TICKS)
  t.match(sent(), [{ ticks: 'R_1' }])
  t.end()
})

await test('what stops when its stream has ended does not stop one that has begun since', (t) => {
  const { subscribe, sent, timers, streams, linkAt } = streamsOn(t)
  const { stop } = subscribe(TICKS)
  stop()
  streams.down(linkAt(0).real, { state: 'ended' })
  subscribe(TICKS)
  timers.run()
  sent()
  streams.up(linkAt(0).real)
  t.match(sent(), [{ ticks: 'R_1' }])
  t.end()
})

await test('after a loss, the streams of a link that have subscribers are requested again, and what was before is dropped', (t) => {
  const { subscribe, take, sent, streams, linkAt } = streamsOn(t)
  const kept = subscribe(TICKS)
  const left = subscribe({ ticks: 'R_2' })
  take({ req_id: 1, subscription: { id: 'one' } })
  left.stop()
  sent()
  streams.down(linkAt(0).real, { state: 'waiting', code: 1006 })
  take({ req_id: 1 })
  t.equal(kept.seen.length, 1)
  t.same(sent(), [])
  subscribe({ ticks: 'R_3' }).stop()
  sent()
  streams.up(linkAt(0).real)
  t.same(sent(), [{ ticks: 'R_1', subscribe: 1, req_id: 4 }], 'nothing is forgotten that is gone')
  t.end()
})

await test('a stream that asked while the connection was lost is requested once, whoever comes meanwhile', (t) => {
  const { subscribe, sent, streams, linkAt } = streamsOn(t)
  linkAt(0).isUp = false
  subscribe(TICKS)
  subscribe(TICKS)
  t.same(sent(), [])
  linkAt(0).isUp = true
  streams.up(linkAt(0).real)
  t.same(sent(), [{ ticks: 'R_1', subscribe: 1, req_id: 1 }])
  t.end()
})

await test('when the connection has ended, each subscriber is told its close code once, also one that comes later', async (t) => {
  const reported = reports(t)
  const { subscribe, streams, linkAt, timers } = streamsOn(t)
  const all = [subscribe(TICKS), subscribe(TICKS), subscribe({ ticks: 'R_2' })]
  streams.subscribe(TICKS, () => undefined)
  linkAt(0).status = { state: 'ended', code: 4403 }
  streams.down(linkAt(0).real, linkAt(0).status)
  const late = subscribe(TICKS)
  t.same(late.seen, [])
  await Promise.resolve()
  for (const { seen, stop } of [...all, late]) {
    t.same(seen, [{ name: 'it', code: 'ended', closeCode: 4403 }])
    stop()
  }
  t.same(timers.delays, [], 'there is nothing to stop')
  streams.down(linkAt(0).real, linkAt(0).status)
  t.equal(late.seen.length, 1)
  t.match(reported, [{ code: 'ended', message: 'the connection has ended: 4403' }], 'a page without onError')
})

await test('a stream that is refused for now is requested again later and later, until it is not refused', (t) => {
  const { subscribe, take, sent, timers } = streamsOn(t)
  const { seen } = subscribe(TICKS)
  sent()
  let id = 1
  for (const [code, ms] of [
    ['RateLimit', 1500],
    ['AlreadySubscribed', 2000],
    ['RateLimit', 3000],
    ['', 0],
    ['RateLimit', 1500],
    ['MarketClosed', 0],
    ['RateLimit', 1500],
    ['XRateLimit', 0],
    ['RateLimitX', 0],
  ] as const) {
    take({ req_id: id, ...(code && { error: { code, message: '' } }) })
    t.match(seen.pop(), code ? { code } : { req_id: id })
    t.same(timers.delays, ms ? [ms] : [], code)
    timers.run()
    t.same(sent(), ms ? [{ ticks: 'R_1', subscribe: 1, req_id: ++id }] : [])
  }
  t.end()
})

await test('a refused stream that was requested or stopped meanwhile is not requested once more', (t) => {
  const { subscribe, take, sent, timers, streams, linkAt } = streamsOn(t)
  const { stop } = subscribe(TICKS)
  take({ req_id: 1, error: ALREADY })
  streams.up(linkAt(0).real)
  sent()
  timers.run()
  t.same(sent(), [])
  take({ req_id: 2, error: ALREADY })
  stop()
  timers.run()
  t.same([timers.delays, sent()], [[], []])
  t.end()
})
