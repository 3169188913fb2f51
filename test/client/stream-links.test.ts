import { test } from 'tap'
import { FakeLink } from '../support/client/exchange-on.ts'
import { streamsOn } from '../support/client/streams-on.ts'

const TICKS = { ticks: 'R_1' }
const HISTORY = { ticks_history: 'R_1' }
const OTHER = { ticks: 'R_2' }
const refusal = (req_id: number) => ({ req_id, error: { code: 'AlreadySubscribed', message: '' } })

await test('a stream that is refused beside others that go on moves to the next link at once, which later ones share', (t) => {
  const { subscribe, take, sent, opened, timers, linkAt } = streamsOn(t, 2)
  subscribe(TICKS)
  const history = subscribe(HISTORY)
  const other = subscribe(OTHER)
  sent()
  take({ req_id: 2, subscription: { id: 'two' } })
  take(refusal(2))
  t.same(opened, [0, 1])
  t.same(sent(), [{ forget: 'two', req_id: 4 }])
  t.same(sent(1), [{ ...HISTORY, subscribe: 1, req_id: 5 }])
  take(refusal(3))
  t.same(opened, [0, 1])
  t.match(sent(1), [{ ...OTHER, subscribe: 1 }])
  t.match(history.seen, [{ req_id: 2 }], 'nobody is told of the refusal')
  take({ req_id: 5, history: {} }, 1)
  take({ req_id: 5 })
  t.match(history.seen, [{ req_id: 2 }, { history: {} }], 'a message of the other link is not its')
  t.same(other.seen, [])
  t.same(timers.delays, [], 'nobody waits')
  t.notOk(linkAt(0).isClosed)
  t.end()
})

await test('a stream that is alone, or beside one that stops, is refused twice before it moves', (t) => {
  for (const isAlone of [true, false]) {
    const { subscribe, take, sent, opened, timers } = streamsOn(t, 1)
    const { seen } = subscribe(HISTORY)
    if (!isAlone) {
      subscribe(OTHER)
      subscribe(TICKS).stop()
    }
    take(refusal(1))
    t.same(opened, [0])
    t.same(seen, [])
    t.same(timers.delays.at(-1), 1500)
    sent()
    timers.run()
    const { req_id } = sent().at(-1) ?? {}
    take(refusal(Number(req_id)))
    t.same(opened, [0, 1])
    t.match(sent(1), [HISTORY])
    t.same(seen, [])
  }
  t.end()
})

await test('a stream that no link takes is refused, and asks all of them again, less and less often', (t) => {
  const { subscribe, take, sent, opened, streams, timers, linkAt } = streamsOn(t, 1)
  subscribe(TICKS)
  const { seen, stop } = subscribe(HISTORY)
  const asked = (number: number): number => Number(sent(number).at(-1)?.['req_id'])
  take(refusal(2))
  // It is alone there, so it is refused twice.
  take(refusal(3), 1)
  t.same(timers.delays, [1500])
  sent(1)
  timers.run()
  const last = linkAt(1)
  take(refusal(asked(1)), 1)
  t.match(seen, [{ code: 'AlreadySubscribed' }])
  t.same(timers.delays, [1000, 2000], 'the link is left, and the stream waits')
  timers.run()
  t.ok(last.isClosed, 'nothing is left there')
  take(refusal(asked(0)))
  t.same(opened, [0, 1, 1])
  take(refusal(asked(1)), 1)
  t.same([seen.length, timers.delays], [2, [1000, 3000]])
  sent()
  streams.up(linkAt(0).real)
  t.match(sent(), [TICKS, HISTORY])
  timers.run()
  t.same(sent(), [], 'a new connection has asked for it already')
  take(refusal(8))
  take(refusal(asked(1)), 1)
  stop()
  timers.run()
  timers.run()
  t.same([sent(), sent(1)], [[], []], 'nobody wants it any more')
  t.end()
})

await test('a link besides the first is closed a second after its last stream has stopped, and opened again for another', (t) => {
  const { streams, subscribe, take, opened, timers, linkAt } = streamsOn(t, 1)
  subscribe(TICKS)
  const one = subscribe(HISTORY)
  const two = subscribe(OTHER)
  take(refusal(2))
  take(refusal(3))
  const second = linkAt(1)
  one.stop()
  timers.run()
  t.same(timers.delays, [1000])
  timers.run()
  t.notOk(second.isClosed, 'it has another stream')
  two.stop()
  timers.run()
  t.notOk(second.isClosed)
  timers.run()
  t.ok(second.isClosed)
  t.notOk(linkAt(0).isClosed)
  second.status = { state: 'waiting' }
  t.equal(streams.status, linkAt(0).status, 'it is none any more')
  subscribe(HISTORY)
  take(refusal(6))
  t.same(opened, [0, 1, 1])
  t.end()
})

await test('the end of the first link closes the others, and that of another ends its streams alone', (t) => {
  for (const number of [0, 1, 2]) {
    const { subscribe, take, streams, linkAt } = streamsOn(t, 2)
    const all = [TICKS, HISTORY, OTHER].map((message) => subscribe(message))
    take(refusal(2))
    take(refusal(3))
    subscribe({ ticks: 'R_3' })
    // The other stream of that link goes on, so this one moves on.
    take(refusal(5), 1)
    const links = [0, 1, 2].map(linkAt)
    streams.down(linkAt(number).real, { state: 'ended', code: 4403 })
    const ended = { 0: [true, false, false], 1: [false, true, false], 2: [false, false, true] }[number]
    t.same(
      all.map(({ seen }) => seen.length === 1),
      ended,
    )
    const closed = number === 0 ? [false, true, true] : links.map((_, at) => at === number)
    t.same(
      links.map(({ isClosed }) => isClosed),
      closed,
    )
  }
  t.end()
})

await test('the loss of a link concerns its streams alone', (t) => {
  const { subscribe, take, sent, streams, linkAt } = streamsOn(t, 1)
  subscribe(TICKS)
  const { seen } = subscribe(HISTORY)
  take(refusal(2))
  sent()
  sent(1)
  streams.down(linkAt(1).real, { state: 'waiting' })
  t.notOk(linkAt(1).isClosed)
  streams.up(linkAt(1).real)
  t.same(sent(), [])
  t.match(sent(1), [{ ...HISTORY, subscribe: 1 }])
  streams.take(new FakeLink().real, { req_id: 4 })
  t.same(seen, [], 'a message of a link that is none')
  t.end()
})

await test('status is that of a link that is not open, if there is one, and else that of the first', (t) => {
  const { subscribe, take, streams, linkAt } = streamsOn(t, 2)
  subscribe(TICKS)
  subscribe(HISTORY)
  take(refusal(2))
  t.equal(streams.link, linkAt(0).real)
  t.equal(streams.status, linkAt(0).status)
  for (const [number, state, shown] of [
    [1, 'ended', 0],
    [1, 'stale', 1],
    [1, 'open', 0],
    [0, 'waiting', 0],
    [1, 'connecting', 0],
  ] as const) {
    linkAt(number).status = { state }
    t.equal(streams.status, linkAt(shown).status, state)
  }
  t.end()
})
