import { array, assert, constantFrom, integer, nat, pre, property, record, type Arbitrary } from 'fast-check'
import { test } from 'tap'
import { dissect, type UpstreamMessage } from '../../src/sockets/feed/dissect.ts'
import { pointOf, tailOf, type Point } from '../../src/sockets/feed/points.ts'
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
const seriesOf = (steps: readonly number[], maxLength: number): Arbitrary<Tick[]> =>
  array(record({ step: constantFrom(...steps), quote: constantFrom(1, 2, 3) }), {
    minLength: 3,
    maxLength,
    size: 'max',
  }).map((ticks) => {
    let epoch = 100
    return ticks.map(({ step, quote }): Tick => ({ epoch: (epoch += step), quote }))
  })

/** How far a history may be behind its stream. */
const MAX_BEHIND = 40
const picks = array(nat(), { minLength: 4, maxLength: 4 })

/** The stream begins; a history is asked for; it ends somewhere, behind or ahead of the stream; it arrives. */
function courseOf(ticks: readonly Tick[], [a = 0, b = 0, c = 0, d = 0]: readonly number[]): Course {
  const { length } = ticks
  const begin = 1 + (a % length)
  const asked = begin + (b % (length - begin + 1))
  const arrival = asked + (c % (length - asked + 1))
  const earliest = Math.max(begin, asked - MAX_BEHIND)
  // With a single epoch nobody can tell which of its equal ticks a history has.
  pre(ticks[0]?.epoch !== ticks[begin - 1]?.epoch)
  return { begin, asked, end: earliest + (d % (length - earliest + 1)), arrival }
}

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

/** Events of a stream, each told by the number of ticks that there were then. */
interface Course {
  /** The stream begins with a history. */
  readonly begin: number
  /** Another history is asked for. */
  readonly asked: number
  /** Upstream answers with what it has, from the first tick unless from another one. */
  readonly from?: number
  readonly end: number
  /** The history arrives. */
  readonly arrival: number
}

/** The places of the ticks that follow the history for a browser that gets it last. */
function continued(ticks: readonly Tick[], { begin, asked, from = 0, end, arrival }: Course): number[] {
  const recent = new RecentMessages()
  recent.begin(tailOf(historyOf(ticks.slice(0, begin))))
  let needed = Infinity
  const add = (place: number, visit?: (point: Point | undefined) => void): void => {
    const [tick] = ticks.slice(place, place + 1)
    if (tick === undefined) return
    const sent = tickOf(tick, place)
    visit?.(pointOf(sent))
    recent.add(pointOf(sent), sent, needed)
  }
  for (let place = begin; place < asked; place++) add(place)
  const since = (needed = recent.nextSequence)
  for (let place = asked; place < arrival; place++) add(place)
  const { next: known, seam } = recent.after(tailOf(historyOf(ticks.slice(from, end))), since, false)
  let next = known
  for (let place = arrival; place < ticks.length; place++) {
    add(place, (point) => {
      if (next !== undefined) return
      const isLater = seam?.isLater(point, recent.nextSequence)
      if (isLater === true || seam?.isOver === true) next = recent.nextSequence + (isLater === true ? 0 : 1)
    })
  }
  return next === undefined ? [] : recent.from(next).map(placeOf)
}

await test('after a history every later tick follows exactly once, wherever the history ends', async (t) => {
  assert(property(seriesOf([0, 0, 1, 2], 30), picks, continuesOnce), { numRuns: RUNS })
  t.pass(`${RUNS} runs`)
})

await test('also where far more ticks come than are kept in any case', async (t) => {
  assert(property(seriesOf([0, 1, 2], 300), picks, continuesOnce), { numRuns: RUNS })
  t.pass(`${RUNS} runs`)
})

await test('a history of a few ticks and what follows it are a part of the series', async (t) => {
  assert(property(seriesOf([0, 0, 1, 2], 30), picks, integer({ min: 1, max: 5 }), isPart), { numRuns: RUNS })
  t.pass(`${RUNS} runs`)
})

/** The places of the messages so far that follow a history. */
function following(recent: RecentMessages, history: UpstreamMessage, since: number, isCandles: boolean): number[] {
  const { next } = recent.after(tailOf(history), since, isCandles)
  return next === undefined ? [] : recent.from(next).map(placeOf)
}

await test('a short history is continued where all that it shows of its epoch has been', async (t) => {
  const complete = new RecentMessages()
  complete.begin({ epoch: 5, values: ['1', '2'], isWhole: true })
  const { next, seam } = complete.after({ epoch: 5, values: ['1', '2', '1', '2'], isWhole: false }, 0, false)
  t.equal(next, undefined, 'the stream has only two ticks of this second so far')
  const isOver = ['1', '2'].map((value) => seam?.isLater({ epoch: 5, value }, 0) === false && seam.isOver)
  t.same(isOver, [false, true])
  const unknown = new RecentMessages()
  unknown.begin({ epoch: 5, values: ['1'], isWhole: false })
  for (const [place, quote] of [2, 1, 2].entries()) {
    const sent = tickOf({ epoch: 5, quote }, place)
    unknown.add(pointOf(sent), sent, 0)
  }
  const { next: second = 0 } = unknown.after({ epoch: 5, values: ['1', '2'], isWhole: true }, 0, false)
  t.same(unknown.from(second).map(placeOf), [1, 2], 'the history has only two ticks of this second')
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
  const { next, seam } = recent.after(tailOf(historyOf([{ epoch: 5, quote: 4 }])), 1, false)
  t.equal(next, undefined)
  t.equal(seam?.isLater({ epoch: 5, value: '4' }, 0), false)
  t.equal(seam?.isOver, true, 'the tick that the history ends with')
})

await test('where the stream has passed the last tick of a history, all that it still has of that epoch follows', async (t) => {
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

await test('a history that is empty or ends long ago is followed by what came since it was asked for', async (t) => {
  const recent = new RecentMessages()
  recent.begin({ epoch: 50, values: ['1'], isWhole: true })
  for (const place of [0, 1, 2]) {
    const sent = tickOf({ epoch: 51 + place, quote: 1 }, place)
    recent.add(pointOf(sent), sent, 0)
  }
  t.same(recent.after(undefined, 2, false), { next: 2 })
  t.same(recent.after({ epoch: 7, values: ['1'], isWhole: true }, 3, false, false), { next: 3 })
  t.same(recent.from(2).map(placeOf), [1, 2])
  t.same(recent.from(3).map(placeOf), [2])
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
  const { seam } = recent.after(tailOf(candles(60, 6)), 0, true)
  t.equal(seam?.isLater(pointOf(ohlc(60, 5)), 0), false)
  t.equal(seam?.isLater(pointOf(ohlc(60, 6)), 0), false)
  t.equal(seam?.isOver, true)
  const ahead = recent.after(tailOf(candles(60, 6)), 0, true).seam
  t.equal(ahead?.isLater(pointOf(ohlc(120, 1)), 0), true, 'the next candle')
  const never = recent.after(tailOf(candles(60, 6)), 0, true).seam
  const passed = Array.from({ length: 9 }, () => never?.isLater(pointOf(ohlc(60, 5)), 0))
  t.same(passed.indexOf(true), 8, 'a candle that upstream never streams holds back no more than eight')
})

await test('a candle that the stream has closed follows as it was closed, whatever the history shows of it', async (t) => {
  const recent = new RecentMessages()
  recent.begin(tailOf(candles(60, 1)))
  for (const sent of [ohlc(60, 2), ohlc(60, 3), ohlc(120, 4)]) recent.add(pointOf(sent), sent, 0)
  t.same(following(recent, candles(60, 9), 0, true), [3, 4])
  t.same(following(recent, candles(60, 3), 0, true), [4])
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
