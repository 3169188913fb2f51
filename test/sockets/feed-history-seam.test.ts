import { array, assert, constantFrom, nat, pre, property, record } from 'fast-check'
import { test } from 'tap'
import { dissect, type UpstreamMessage } from '../../src/sockets/feed/dissect.ts'
import { pointOf, tailOf } from '../../src/sockets/feed/points.ts'
import { RecentMessages } from '../../src/sockets/feed/recent-messages.ts'

const RUNS = Number(process.env['RUNS'] ?? 2000)

interface Tick {
  readonly epoch: number
  readonly quote: number
}

const message = (body: unknown): UpstreamMessage => {
  const dissected = dissect(Buffer.from(JSON.stringify(body)))
  if (dissected === undefined) throw new Error('no message')
  return dissected
}
const historyOf = (ticks: readonly Tick[]): UpstreamMessage =>
  message({
    history: { prices: ticks.map(({ quote }) => quote), times: ticks.map(({ epoch }) => epoch) },
    msg_type: 'history',
  })
/** The place of a tick in the series is hidden in it, where only the test looks. */
const tickOf = ({ epoch, quote }: Tick, place: number): UpstreamMessage => message({ tick: { epoch, quote, place } })
const placeOf = ({ body }: UpstreamMessage): number => Number(/"place":(\d+)/.exec(body.toString())?.[1])

const ohlc = (openTime: number, close: number): UpstreamMessage =>
  message({ ohlc: { open_time: openTime, open: '1', high: '9', low: '1', close: String(close), place: close } })
const candles = (epoch: number, close: number): UpstreamMessage =>
  message({
    candles: [
      { epoch: epoch - 60, open: 1, high: 9, low: 1, close: 1 },
      { epoch, open: 1, high: 9, low: 1, close },
    ],
  })

/** Ticks of which several may have one epoch, and the same quote. */
const series = array(record({ step: constantFrom(0, 0, 1, 2), quote: constantFrom(1, 2, 3) }), {
  minLength: 3,
  maxLength: 30,
}).map((steps) => {
  let epoch = 100
  return steps.map(({ step, quote }): Tick => ({ epoch: (epoch += step), quote }))
})

/** What a stream that began after `begin` ticks sends after a history of the ticks up to `end` that arrives after `arrival` ticks. */
function continued(ticks: readonly Tick[], begin: number, asked: number, end: number, arrival: number): number[] {
  const recent = new RecentMessages()
  recent.begin(tailOf(historyOf(ticks.slice(0, begin))))
  const add = (place: number, tick: Tick): UpstreamMessage => {
    const sent = tickOf(tick, place)
    recent.add(pointOf(sent), sent, 0)
    return sent
  }
  let since = recent.nextSequence
  for (const [place, tick] of ticks.slice(0, arrival).entries()) {
    if (place < begin) continue
    if (place === asked) since = recent.nextSequence
    add(place, tick)
  }
  if (asked >= arrival) since = recent.nextSequence
  const { later, seam } = recent.after(tailOf(historyOf(ticks.slice(0, end))), since, false)
  const places = later.map(placeOf)
  for (const [index, tick] of ticks.slice(arrival).entries()) {
    const sent = add(arrival + index, tick)
    if (seam === undefined || seam.isOver || seam.isLater(pointOf(sent))) places.push(placeOf(sent))
  }
  return places
}

await test('after a history every later tick follows exactly once, wherever the history ends', async (t) => {
  assert(
    property(series, array(nat(), { minLength: 4, maxLength: 4 }), (ticks, picks) => {
      const [a = 0, b = 0, c = 0, d = 0] = picks
      const { length } = ticks
      // The stream begins; a history is asked for; it ends somewhere, behind or ahead of the stream; it arrives.
      const begin = 1 + (a % length)
      const asked = begin + (b % (length - begin + 1))
      const arrival = asked + (c % (length - asked + 1))
      const end = begin + (d % (length - begin + 1))
      // With a single epoch nobody can tell which of its equal ticks a history has.
      pre(ticks[0]?.epoch !== ticks[begin - 1]?.epoch)
      const places = continued(ticks, begin, asked, end, arrival)
      const expected = Array.from({ length: length - end }, (_, index) => end + index)
      return JSON.stringify(places) === JSON.stringify(expected)
    }),
    { numRuns: RUNS },
  )
  t.pass(`${RUNS} runs`)
})

await test('a history of one tick is continued by its value', async (t) => {
  const recent = new RecentMessages()
  recent.begin({ epoch: 5, values: ['1'], isWhole: false })
  for (const [place, tick] of [2, 3].entries()) {
    const sent = tickOf({ epoch: 5, quote: tick }, place)
    recent.add(pointOf(sent), sent, 0)
  }
  const after = (quote: number): number[] =>
    recent.after(tailOf(historyOf([{ epoch: 5, quote }])), 1, false).later.map(placeOf)
  t.same(after(1), [0, 1])
  t.same(after(2), [1])
  t.same(after(3), [])
  const { later, seam } = recent.after(tailOf(historyOf([{ epoch: 5, quote: 4 }])), 1, false)
  t.same(later, [])
  t.equal(seam?.isLater({ epoch: 5, value: '4' }), false)
  t.equal(seam?.isOver, true, 'the tick that the history ends with')
})

await test('a history that is empty or ends long ago is followed by what came since it was asked for', async (t) => {
  const recent = new RecentMessages()
  recent.begin({ epoch: 50, values: ['1'], isWhole: true })
  for (const place of [0, 1, 2]) {
    const sent = tickOf({ epoch: 51 + place, quote: 1 }, place)
    recent.add(pointOf(sent), sent, 0)
  }
  t.same(recent.after(undefined, 2, false).later.map(placeOf), [1, 2])
  t.same(recent.after({ epoch: 7, values: ['1'], isWhole: true }, 3, false).later.map(placeOf), [2])
})

await test('no candle older than that of the history follows', async (t) => {
  const recent = new RecentMessages()
  recent.begin(tailOf(candles(60, 1)))
  for (const close of [2, 3, 4]) {
    const sent = ohlc(60, close)
    recent.add(pointOf(sent), sent, 0)
  }
  const closes = (history: UpstreamMessage): string[] =>
    recent.after(tailOf(history), 0, true).later.map(({ body }) => /"place":(\d+)/.exec(body.toString())?.[1] ?? '')
  t.same(closes(candles(60, 1)), ['2', '3', '4'])
  t.same(closes(candles(60, 3)), ['4'])
  t.same(closes(candles(120, 5)), [])
  const { seam } = recent.after(tailOf(candles(60, 6)), 0, true)
  t.equal(seam?.isLater(pointOf(ohlc(60, 5))), false)
  t.equal(seam?.isLater(pointOf(ohlc(60, 6))), false)
  t.equal(seam?.isOver, true)
  const ahead = recent.after(tailOf(candles(60, 6)), 0, true).seam
  t.equal(ahead?.isLater(pointOf(ohlc(120, 1))), true, 'the next candle')
  const never = recent.after(tailOf(candles(60, 6)), 0, true).seam
  const passed = Array.from({ length: 9 }, () => never?.isLater(pointOf(ohlc(60, 5))))
  t.same(passed.indexOf(true), 8, 'a candle that upstream never streams holds back no more than eight')
})

await test('a message of upstream’s that is no point or history does no harm', async (t) => {
  const odd = [null, 0, 'x', [], [null], {}, { epoch: { toString: 1 } }, [{ epoch: [{ toString: 1 }], open: {} }]]
  for (const value of odd) {
    for (const key of ['tick', 'ohlc']) t.equal(pointOf(message({ [key]: value })), undefined, JSON.stringify(value))
    for (const body of [{ history: value }, { candles: value }, { history: { times: value, prices: value } }]) {
      t.doesNotThrow(() => tailOf(message(body)), JSON.stringify(body))
    }
  }
})
