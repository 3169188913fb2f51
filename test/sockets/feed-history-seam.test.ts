import { assert, integer, property } from 'fast-check'
import { test } from 'tap'
import { pointOf, tailOf } from '../../src/sockets/feed/history/points.ts'
import { RecentMessages } from '../../src/sockets/feed/history/recent-messages.ts'
import {
  continued,
  courseOf,
  ended,
  following,
  historyOf,
  message,
  picks,
  placeOf,
  seriesOf,
  tickOf,
  type Tick,
} from '../support/feed/seams.ts'

const RUNS = Number(process.env['RUNS'] ?? 2000)

/** Whether every tick after a history follows exactly once. */
function continuesOnce(ticks: readonly Tick[], picks: readonly number[]): boolean {
  const course = courseOf(ticks, picks)
  const expected = Array.from({ length: ticks.length - course.end }, (_, index) => course.end + index)
  return JSON.stringify(continued(ticks, course)) === JSON.stringify(expected)
}

/** Whether a history of a few ticks and what follows it are a part of the series. Which one is not known: ticks can be equal. */
function isPart(ticks: readonly Tick[], picks: readonly number[], count: number): boolean {
  const course = courseOf(ticks, picks)
  const from = Math.max(0, course.end - count)
  const places = continued(ticks, { ...course, from })
  const received = [...ticks.slice(from, course.end), ...places.map((place) => ticks[place])]
  return JSON.stringify(received) === JSON.stringify(ticks.slice(ticks.length - received.length))
}

await test('after a history every later tick follows exactly once, wherever the history ends', async (t) => {
  assert(property(seriesOf([0, 0, 1, 2], 30), picks, continuesOnce), { numRuns: RUNS })
  t.pass(`${RUNS} runs`)
})

await test('after a history every later tick follows exactly once, also where far more ticks come than are always kept', async (t) => {
  assert(property(seriesOf([0, 1, 2], 300), picks, continuesOnce), { numRuns: RUNS })
  t.pass(`${RUNS} runs`)
})

await test('a history of a few ticks and the ticks that follow it are a part of the series', async (t) => {
  assert(property(seriesOf([0, 0, 1, 2], 30), picks, integer({ min: 1, max: 5 }), isPart), { numRuns: RUNS })
  t.pass(`${RUNS} runs`)
})

await test('a short history is continued after all ticks that it shows of its last second', async (t) => {
  const complete = new RecentMessages()
  complete.begin({ epoch: 5, values: ['1', '2'], isWhole: true })
  const ahead = ended(complete, historyOf([1, 2, 1, 2].map((quote) => ({ epoch: 5, quote }))))
  t.same(complete.after(ahead), { needed: 0 }, 'the stream has only two ticks of this second so far')
  const later = [1, 2].map((quote, place) => {
    const sent = tickOf({ epoch: 5, quote }, place)
    complete.add(pointOf(sent), sent, 0)
    return complete.after(ahead)
  })
  t.same(later, [{ needed: 0 }, { next: 4 }])
  const unknown = new RecentMessages()
  unknown.begin({ epoch: 5, values: ['1'], isWhole: false })
  for (const [place, quote] of [2, 1, 2].entries()) {
    const sent = tickOf({ epoch: 5, quote }, place)
    unknown.add(pointOf(sent), sent, 0)
  }
  const two = historyOf([
    { epoch: 4, quote: 9 },
    { epoch: 5, quote: 1 },
    { epoch: 5, quote: 2 },
  ])
  t.same(following(unknown, two, 0, false), [1, 2], 'the history has only two ticks of this second')
})

await test('a history of one tick is continued by its value', async (t) => {
  const recent = new RecentMessages()
  recent.begin({ epoch: 5, values: ['1'], isWhole: false })
  for (const [place, tick] of [2, 3].entries()) {
    const sent = tickOf({ epoch: 5, quote: tick }, place)
    recent.add(pointOf(sent), sent, 0)
  }
  const after = (quote: number): number[] => following(recent, historyOf([{ epoch: 5, quote }]), 1, false)
  t.same(after(1), [0, 1])
  t.same(after(2), [1])
  t.same(after(3), [])
  const whole = [[4, 9], ...[0, 1, 2].map((quote) => [5, quote])].map(([epoch = 0, quote = 0]) => ({ epoch, quote }))
  t.same(following(recent, historyOf(whole), 1, false), [1], 'also if it has ticks from before the stream')
  const ahead = ended(recent, historyOf([{ epoch: 5, quote: 4 }]), { since: 1 })
  t.same(recent.after(ahead), { needed: 0 })
  for (const [place, quote] of [2, 4].entries()) {
    const sent = tickOf({ epoch: 5, quote }, 2 + place)
    recent.add(pointOf(sent), sent, 0)
    if (quote === 2) t.same(after(2), [], 'of two equal ticks the later one')
  }
  t.same(recent.after(ahead), { next: 5 }, 'after the tick that the history ends with')
})

await test('a history of one tick that equals the first of the stream is not followed by that tick', async (t) => {
  const recent = new RecentMessages()
  const add = (epoch: number, quote: number, place: number): void => {
    const sent = tickOf({ epoch, quote }, place)
    recent.add(pointOf(sent), sent, 0)
  }
  const one = historyOf([{ epoch: 5, quote: 1 }])
  add(5, 1, 0)
  t.same(recent.after(ended(recent, one)), { next: 1 })
  add(6, 2, 1)
  t.same(following(recent, one, 0, false), [1])
})

await test('a history is continued in the middle of a second with more ticks than are kept', async (t) => {
  const recent = new RecentMessages()
  const begun = [99, 100].map((epoch) => ({ epoch, quote: 0 }))
  recent.begin(tailOf(historyOf(begun)))
  const ticks = Array.from({ length: 100 }, (_, place) => ({ epoch: 100, quote: place + 1 }))
  const add = (tick: Tick, place: number): void => {
    const sent = tickOf(tick, place)
    recent.add(pointOf(sent), sent, Infinity)
  }
  for (const [place, tick] of ticks.entries()) add(tick, place)
  const { next = 0 } = recent.after(ended(recent, historyOf([...begun, ...ticks]), { since: recent.nextSequence }))
  add({ epoch: 100, quote: 200 }, 200)
  t.same(recent.from(next).map(placeOf), [200])
})

await test('if the stream has passed the last tick of a history, all that it still has of that second follows', async (t) => {
  const recent = new RecentMessages()
  for (const [place, quote] of [2, 3].entries()) {
    const sent = tickOf({ epoch: 5, quote }, place)
    recent.add(pointOf(sent), sent, 0)
  }
  const sent = tickOf({ epoch: 6, quote: 4 }, 2)
  recent.add(pointOf(sent), sent, 0)
  t.same(following(recent, historyOf([{ epoch: 5, quote: 1 }]), 0, false), [0, 1, 2])
  const whole = [4, 5, 5, 5].map((epoch, index) => ({ epoch, quote: index }))
  const complete = new RecentMessages()
  complete.begin(tailOf(historyOf(whole.slice(0, 2))))
  for (const tick of [
    { epoch: 5, quote: 2 },
    { epoch: 6, quote: 4 },
  ]) {
    const next = tickOf(tick, tick.quote)
    complete.add(pointOf(next), next, 0)
  }
  t.same(following(complete, historyOf(whole), 0, false), [4], 'unless the history has more of it')
})

await test('a history that is empty or ended long ago is followed by what has come since it was asked for', async (t) => {
  const recent = new RecentMessages()
  recent.begin({ epoch: 50, values: ['1'], isWhole: true })
  for (const place of [0, 1, 2]) {
    const sent = tickOf({ epoch: 51 + place, quote: 1 }, place)
    recent.add(pointOf(sent), sent, 0)
  }
  t.same(recent.after(ended(recent, historyOf([]), { since: 2 })), { next: 2 })
  const old = historyOf([{ epoch: 7, quote: 1 }])
  t.same(recent.after(ended(recent, old, { since: 3, isLatest: false })), { next: 3 })
  t.same(recent.from(2).map(placeOf), [1, 2])
  t.same(recent.from(3).map(placeOf), [2])
})

await test('a message of upstream’s that is no point or history does no harm', async (t) => {
  const odd = [null, 0, 'x', [], [null], {}, { epoch: { toString: 1 } }, [{ epoch: [{ toString: 1 }], open: {} }]]
  for (const value of odd) {
    for (const key of ['tick', 'ohlc']) t.equal(pointOf(message({ [key]: value })), undefined, JSON.stringify(value))
    const partial = [
      { times: value, prices: value },
      { times: [1], prices: value },
      { times: value, prices: [1] },
    ]
    const histories = partial.map((history) => ({ history }))
    for (const body of [{ history: value }, { candles: value }, ...histories]) {
      t.doesNotThrow(() => tailOf(message(body)), JSON.stringify(body))
    }
  }
})
