import { array, constantFrom, nat, pre, record, type Arbitrary } from 'fast-check'
import { dissect, type UpstreamMessage } from '../../../src/sockets/feed/wire/dissect.ts'
import { pointOf, tailOf } from '../../../src/sockets/feed/history/points.ts'
import { Position } from '../../../src/sockets/feed/history/position.ts'
import { RecentMessages } from '../../../src/sockets/feed/history/recent-messages.ts'

/** A price, and its second. */
export interface Tick {
  readonly epoch: number
  readonly quote: number
}

/** A message of upstream, read as the feed reads it. */
export const message = (body: unknown): UpstreamMessage => {
  const dissected = dissect(Buffer.from(JSON.stringify(body)))
  if (dissected === undefined) throw new Error('no message')
  return dissected
}
/** A history of ticks. */
const historyOf = (ticks: readonly Tick[]): UpstreamMessage =>
  message({
    history: { prices: ticks.map(({ quote }) => quote), times: ticks.map(({ epoch }) => epoch) },
    msg_type: 'history',
  })
/** The place of a tick in the series is hidden in it, where only the test looks. */
const tickOf = ({ epoch, quote }: Tick, place: number): UpstreamMessage => message({ tick: { epoch, quote, place } })
/** The place that is hidden in a message. */
const placeOf = ({ body }: UpstreamMessage): number => Number(/"place":(\d+)/.exec(body.toString())?.[1])

/** Ticks of which several may have one epoch, and the same quote. */
export const seriesOf = (
  steps: readonly number[],
  maxLength: number,
  quotes: readonly number[] = [1, 2, 3],
): Arbitrary<Tick[]> =>
  array(record({ step: constantFrom(...steps), quote: constantFrom(...quotes) }), {
    minLength: 3,
    maxLength,
    size: 'max',
  }).map((ticks) => {
    let epoch = 100
    return ticks.map(({ step, quote }): Tick => ({ epoch: (epoch += step), quote }))
  })

/** How far a history may be behind its stream. */
const MAX_BEHIND = 40
/** Choices of a course, as large numbers. */
export const picks = array(nat(), { minLength: 4, maxLength: 4 })

/** The stream begins; a history is asked for; it ends somewhere, behind or ahead of the stream; it arrives. */
export function courseOf(ticks: readonly Tick[], [a = 0, b = 0, c = 0, d = 0]: readonly number[]): Course {
  const { length } = ticks
  const begin = 1 + (a % length)
  const asked = begin + (b % (length - begin + 1))
  const arrival = asked + (c % (length - asked + 1))
  const earliest = Math.max(begin, asked - MAX_BEHIND)
  // With a single epoch nobody can tell which of its equal ticks a history has.
  pre(ticks[0]?.epoch !== ticks[begin - 1]?.epoch)
  return { begin, asked, end: earliest + (d % (length - earliest + 1)), arrival }
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

/** How upstream tells a series of ticks. */
interface Telling {
  readonly isCandles: boolean
  readonly history: (ticks: readonly Tick[]) => UpstreamMessage
  /** The message for the last of these ticks. */
  readonly sent: (ticks: readonly Tick[]) => UpstreamMessage
}

const asTicks: Telling = {
  isCandles: false,
  history: historyOf,
  sent: (ticks) => tickOf(ticks.at(-1) ?? { epoch: 0, quote: 0 }, ticks.length - 1),
}

/** Candles of ten seconds. */
export const asCandles: Telling = {
  isCandles: true,
  history: (ticks) =>
    message({ candles: [...candlesOf(ticks)].map(([epoch, candle]) => Object.assign(candle, { epoch })) }),
  sent: (ticks) => {
    const [openTime, candle] = [...candlesOf(ticks)].at(-1) ?? []
    return message({ ohlc: { open_time: openTime, ...candle, place: ticks.length - 1 } })
  },
}

function candlesOf(ticks: readonly Tick[]): Map<number, Record<'open' | 'high' | 'low' | 'close', number>> {
  const candles = new Map<number, Record<'open' | 'high' | 'low' | 'close', number>>()
  for (const { epoch, quote } of ticks) {
    const opened = epoch - (epoch % 10)
    const { open = quote, high = quote, low = quote } = candles.get(opened) ?? {}
    candles.set(opened, { open, high: Math.max(high, quote), low: Math.min(low, quote), close: quote })
  }
  return candles
}

/** The places of the ticks that follow the history for a browser that gets it last. */
export function continued(
  ticks: readonly Tick[],
  course: Course,
  { isCandles, history, sent }: Telling = asTicks,
): number[] {
  const { begin, asked, from = 0, end, arrival } = course
  const recent = new RecentMessages()
  recent.begin(tailOf(history(ticks.slice(0, begin))))
  const add = (place: number, needed = Infinity): void => {
    const message = sent(ticks.slice(0, place + 1))
    recent.add(pointOf(message), message, needed)
  }
  for (let place = begin; place < asked; place++) add(place)
  const position = new Position(recent, { fields: new Map(isCandles ? [['style', 'candles']] : []) })
  for (let place = asked; place < arrival; place++) add(place, position.at)
  position.came(tailOf(history(ticks.slice(from, end))))
  position.seek()
  for (let place = arrival; place < ticks.length; place++) {
    add(place, position.at)
    position.seek()
  }
  return position.isKnown ? position.messages.map(placeOf) : []
}
