import { assert, pre, property } from 'fast-check'
import { test } from 'tap'
import type { UpstreamMessage } from '../../src/sockets/feed/wire/dissect.ts'
import { pointOf, tailOf } from '../../src/sockets/feed/history/points.ts'
import { type Continuation, type HistoryEnd, RecentMessages } from '../../src/sockets/feed/history/recent-messages.ts'
import {
  asCandles,
  continued,
  courseOf,
  ended,
  following,
  message,
  picks,
  seriesOf,
  type Tick,
} from '../support/feed/seams.ts'

/** So many prices that a candle becomes wider for long. */
const MANY = Array.from({ length: 200 }, (_, index) => index + 1)
/** So many states of one range are held back, as in seam.ts. */
const MAX_UNDECIDED = 64
const RUNS = Number(process.env['RUNS'] ?? 2000)

const ohlc = (openTime: number, close: number, high = '9.0'): UpstreamMessage =>
  message({ ohlc: { open_time: openTime, open: '1', high, low: '1', close: String(close), place: close } })
const candles = (epoch: number, close: number, high = 9): UpstreamMessage =>
  message({
    candles: [
      { epoch: epoch - 60, open: 1, high: 9, low: 1, close: 1 },
      { epoch, open: 1, high, low: 1, close },
    ],
  })

/** Where a history goes on once the stream has sent one more message. */
function after(recent: RecentMessages, history: HistoryEnd, sent: UpstreamMessage): Continuation {
  const { next, needed } = recent.after(history)
  recent.add(pointOf(sent), sent, next ?? needed)
  return recent.after(history)
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

await test('after a history of candles every later state of them follows, and no older one', async (t) => {
  assert(property(seriesOf([0, 0, 1, 2], 60), picks, candlesContinueOnce), { numRuns: RUNS })
  assert(property(seriesOf([0, 0, 0, 0, 0, 0, 1], 200, MANY), picks, candlesContinueOnce), { numRuns: RUNS / 10 })
  t.pass(`${RUNS} runs`)
})

await test('no candle older than that of the history follows', async (t) => {
  const recent = new RecentMessages()
  recent.begin(tailOf(candles(60, 1)))
  for (const close of [2, 3, 4]) {
    const sent = ohlc(60, close)
    recent.add(pointOf(sent), sent, 0)
  }
  const closes = (history: UpstreamMessage): number[] => following(recent, history, 0, true)
  t.same(closes(candles(60, 1)), [2, 3, 4])
  t.same(closes(candles(60, 3)), [4])
  t.same(closes(candles(120, 5)), [])
  const again = ohlc(60, 3)
  recent.add(pointOf(again), again, 0)
  t.same(closes(candles(60, 3)), [], 'a state that has come twice')
  const { nextSequence } = recent
  const ahead = ended(recent, candles(60, 6), { isCandles: true })
  t.same(recent.after(ahead), { needed: Infinity }, 'ahead of the stream')
  t.same(after(recent, ahead, ohlc(60, 5)), { needed: nextSequence })
  t.same(after(recent, ahead, ohlc(60, 6)), { next: nextSequence + 2 }, 'after the state that the history ends with')
})

await test('a history of candles that is ahead is followed by the next candle, and by what is no candle', async (t) => {
  for (const [what, sent] of Object.entries({ 'no candle': message({ other: 1 }), 'the next': ohlc(120, 1) })) {
    const recent = new RecentMessages()
    const ahead = ended(recent, candles(60, 6), { isCandles: true })
    t.same(after(recent, ahead, sent), { next: 0 }, what)
  }
})

await test('a state of a candle that upstream never streams holds back no more than 64 of its range', async (t) => {
  const recent = new RecentMessages()
  recent.begin(tailOf(candles(60, 1)))
  const ahead = ended(recent, candles(60, 6), { isCandles: true })
  const wheres = Array.from({ length: 65 }, () => after(recent, ahead, ohlc(60, 5)))
  t.equal(
    wheres.findIndex(({ next }) => next !== undefined),
    64,
  )
  t.same(wheres.at(-1), { next: 65 })
})

await test('of two states of a candle the one with the wider range is the later one', async (t) => {
  const recent = new RecentMessages()
  recent.begin(tailOf(candles(60, 1)))
  const ahead = ended(recent, candles(60, 6, 20), { isCandles: true })
  const narrower = Array.from({ length: 500 }, () => after(recent, ahead, ohlc(60, 5, '19.99')))
  t.ok(
    narrower.every(({ needed }) => needed === Infinity),
    'however many older ones come, none of them follows',
  )
  t.same(after(recent, ahead, ohlc(60, 5, '20.01')), { next: 501 })
})

await test('a state of a candle that upstream has not streamed lies between two that it has', async (t) => {
  const recent = new RecentMessages()
  recent.begin(tailOf(candles(60, 1)))
  for (const sent of [ohlc(60, 2, '10'), ohlc(60, 3, '11'), ohlc(60, 4, '11')]) recent.add(pointOf(sent), sent, 0)
  t.same(following(recent, candles(60, 7, 10), 0, true), [3, 4])
})

await test('a candle that the stream has closed follows as it was closed, whatever the history shows of it', async (t) => {
  const recent = new RecentMessages()
  recent.begin(tailOf(candles(60, 1)))
  for (const sent of [ohlc(60, 2), ohlc(60, 3), ohlc(120, 4)]) recent.add(pointOf(sent), sent, 0)
  t.same(following(recent, candles(60, 9), 0, true), [3, 4])
  t.same(following(recent, candles(60, 3), 0, true), [4])
  t.same(following(recent, candles(60, 3, 8), 0, true), [2, 3, 4], 'all that are surely later')
  t.same(following(recent, candles(60, 3, 10), 0, true), [4], 'unless it was surely older')
})
