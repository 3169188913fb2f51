import { assert, integer, pre, property } from 'fast-check'
import { test } from 'tap'
import { pointOf, tailOf } from '../../src/sockets/feed/history/points.ts'
import { Position } from '../../src/sockets/feed/history/position.ts'
import { RecentMessages } from '../../src/sockets/feed/history/recent-messages.ts'
import { asCandles, continued, courseOf, message, picks, seriesOf, type Tick } from '../support/feed/seams.ts'

const RUNS = Number(process.env['RUNS'] ?? 2000)
/** So many prices that a candle becomes wider for long. */
const MANY = Array.from({ length: 200 }, (_, index) => index + 1)
/** So many states of one range are held back, as in seam.ts. */
const MAX_UNDECIDED = 64

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

/** Whether every later state of the candles follows exactly once. A state can come twice; no one knows which of them the history has. */
function candlesContinueOnce(ticks: readonly Tick[], picks: readonly number[]): boolean {
  const course = courseOf(ticks, picks)
  // No more are held back of which nobody can tell whether they are older.
  pre(course.end - course.arrival <= MAX_UNDECIDED)
  const places = continued(ticks, course, asCandles)
  const first = ticks.length - places.length
  const pointAt = (place: number): string => JSON.stringify(pointOf(asCandles.sent(ticks.slice(0, place + 1))))
  const isSuffix = places.every((place, index) => place === first + index)
  return isSuffix && pointAt(first - 1) === pointAt(course.end - 1)
}

for (const [what, holds] of [
  [
    'after a history every later tick follows exactly once, wherever the history ends',
    () => assert(property(seriesOf([0, 0, 1, 2], 30), picks, continuesOnce), { numRuns: RUNS }),
  ],
  [
    'after a history every later tick follows exactly once, also where far more ticks come than are always kept',
    () => assert(property(seriesOf([0, 1, 2], 300), picks, continuesOnce), { numRuns: RUNS }),
  ],
  [
    'a history of a few ticks and the ticks that follow it are a part of the series',
    () => assert(property(seriesOf([0, 0, 1, 2], 30), picks, integer({ min: 1, max: 5 }), isPart), { numRuns: RUNS }),
  ],
  [
    'after a history of candles every later state of them follows, and no older one',
    () => assert(property(seriesOf([0, 0, 1, 2], 60), picks, candlesContinueOnce), { numRuns: RUNS }),
  ],
  [
    'after a history of candles every later state of them follows, also where a candle becomes wider for long',
    () =>
      assert(property(seriesOf([0, 0, 0, 0, 0, 0, 1], 200, MANY), picks, candlesContinueOnce), { numRuns: RUNS / 10 }),
  ],
] as const) {
  await test(what, async (t) => t.doesNotThrow(holds))
}

await test('a history of candles that is ahead is followed by what is no candle', async (t) => {
  const recent = new RecentMessages()
  const candle = { epoch: 60, open: 1, high: 9, low: 1, close: 6 }
  recent.begin(tailOf(message({ candles: [{ ...candle, close: 1 }] })))
  const ahead = new Position(recent, { fields: new Map([['style', 'candles']]) }, 0)
  ahead.came(tailOf(message({ candles: [candle] })))
  const sent = message({ other: 1 })
  recent.add(pointOf(sent), sent, 0)
  t.ok(ahead.seek())
  t.equal(ahead.at, 1)
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
