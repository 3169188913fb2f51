import type { TicksHistoryAnswer } from '../core/generated/messages.ts'
import type { CandlePoint, Gap, Point } from '../core/sockets/series-shape.ts'

/** What differs between the styles. */
export interface Kind<P> {
  /** The request for the stream that brings new points. */
  readonly stream: object
  /** The points that a message of the stream brings, in order. */
  read(message: TicksHistoryAnswer): readonly P[]
  /** The points of a history, in order. */
  past(answer: TicksHistoryAnswer): readonly P[]
  join(history: readonly P[], live: readonly P[], known: number): Joined<P>
  readonly append: (points: readonly P[], point: P) => readonly P[]
}

/** What a history and the stream beside it make of a series. */
interface Joined<P> {
  readonly points: readonly P[]
  readonly gap?: Gap | undefined
  /** The history ends before the stream begins, so something may be missing between them. A later history has it. */
  readonly isBehind: boolean
  /** All that the stream brings from now on comes after these points. */
  readonly isSettled: boolean
}

/** Prices, one after the other. */
export function prices(symbol: string): Kind<Point> {
  return {
    stream: { ticks: symbol },
    read: ({ tick }) => (tick ? wholeOf<Point>([{ epoch: tick.epoch, quote: tick.quote }]) : []),
    past: ({ history: { times = [], prices = [] } = {} }) =>
      wholeOf<Point>(times.map((epoch, index) => ({ epoch, quote: prices[index] }))),
    join: joinPrices,
    append: withPoint,
  }
}

/** Candles of so many seconds. */
export function candles(symbol: string, granularity: number): Kind<CandlePoint> {
  return {
    // Its first answer has the open candle and the one before it, which may have closed since the history.
    stream: { ticks_history: symbol, style: 'candles', granularity, end: 'latest', count: 2 },
    read: ({ ohlc, candles = [] }) => candlesOf(ohlc ? [{ ...ohlc, epoch: ohlc.open_time }] : candles),
    past: ({ candles = [] }) => candlesOf(candles),
    join: joinCandles,
    append: withCandle,
  }
}

function candlesOf(candles: readonly Raw<CandlePoint>[]): CandlePoint[] {
  return wholeOf<CandlePoint>(candles.map(({ epoch, open, high, low, close }) => ({ epoch, open, high, low, close })))
}

/** A point as it came. */
type Raw<P> = { readonly [Name in keyof P]: unknown }

/** The points that are whole, in order. The trading service may send texts; what is missing or null is no number. */
function wholeOf<P extends Point | CandlePoint>(points: readonly Raw<P>[]): P[] {
  const numbers = points.map((point) =>
    Object.fromEntries(Object.entries(point).map(([name, value]) => [name, numberOf(value)])),
  ) as unknown as P[]
  return numbers
    .filter((point) => Object.values(point).every(Number.isFinite))
    .sort((one, other) => one.epoch - other.epoch)
}

function numberOf(value: unknown): unknown {
  return typeof value === 'string' ? Number(value.trim() || NaN) : value
}

/**
 * Joins the points that a series has with a history that was asked from its last point on. The history has every point of its
 * first second, so it takes the place of those.
 * @param isFull whether the history has as many points as the series may have, so that it needs none before it
 */
export function bridge<P extends { readonly epoch: number }>(
  before: readonly P[],
  history: readonly P[],
  isFull: boolean,
): { readonly points: readonly P[]; readonly gap?: Gap | undefined } {
  const [first] = history
  const last = before.at(-1)
  if (isFull || last === undefined || first === undefined) return { points: first === undefined ? before : history }
  const gap = last.epoch < first.epoch ? { from: last.epoch, to: first.epoch } : undefined
  return { points: [...before.filter(({ epoch }) => epoch < first.epoch), ...history], gap }
}

/**
 * Appends the prices of a stream to a history that was asked for after the stream had begun. Prices have no id, and a second may
 * have several, even equal ones, so the last second of the history is compared price by price.
 * @param known how many prices the stream had brought when the history arrived, which usually has them, too
 */
export function joinPrices(history: readonly Point[], live: readonly Point[], known: number): Joined<Point> {
  const epoch = history.at(-1)?.epoch ?? Number.NEGATIVE_INFINITY
  const later = live.filter((point) => point.epoch > epoch)
  const [first] = live
  if (first === undefined || first.epoch > epoch) {
    const gap = first && history.length > 0 ? { from: epoch, to: first.epoch } : undefined
    return { points: [...history, ...live], gap, isBehind: first !== undefined, isSettled: false }
  }
  const inHistory = history.filter((point) => point.epoch === epoch)
  const inStream = live.filter((point) => point.epoch === epoch)
  // A stream that began before has every price of the second so far. One that began in it has those from its first price on.
  const place = first.epoch < epoch ? 0 : placeOf(inStream, inHistory, Math.min(known, inStream.length))
  const isLonger = (place ?? inHistory.length) + inStream.length > inHistory.length
  const second = isLonger ? [...inHistory.slice(0, place), ...inStream] : inHistory
  const points = [...history.slice(0, history.length - inHistory.length), ...second, ...later]
  return { points, isBehind: place === undefined, isSettled: later.length > 0 }
}

/**
 * The newest place in a second where the prices of a stream fit, with all that are known if that is possible; undefined where its
 * first price is nowhere.
 */
function placeOf(inStream: readonly Point[], inHistory: readonly Point[], known: number): number | undefined {
  const places = [...inHistory.keys()].filter((place) =>
    inHistory.slice(place).every(({ quote }, index) => index >= inStream.length || inStream[index]?.quote === quote),
  )
  return places.findLast((place) => place + known <= inHistory.length) ?? places.at(-1)
}

/**
 * Appends the states of candles that a stream has brought to a history that was asked for after the stream had begun. The history
 * decides on candles that it has closed. The newest state of the stream counts for the others: it has, or soon will have, all that
 * the history knew.
 */
function joinCandles(history: readonly CandlePoint[], live: readonly CandlePoint[]): Joined<CandlePoint> {
  const last = history.at(-1)
  const [first] = live
  const gap = last && first && last.epoch < first.epoch ? { from: last.epoch, to: first.epoch } : undefined
  const isBehind = gap !== undefined || last === undefined
  const closed = new Set(history.slice(0, -1).map(({ epoch }) => epoch))
  const others = live.filter(({ epoch }) => !closed.has(epoch))
  return { points: others.reduce(withCandle, history), gap, isBehind, isSettled: !isBehind }
}

/** The points with another one, after those that are not later: it may have arrived late. */
function withPoint<P extends { readonly epoch: number }>(points: readonly P[], point: P): readonly P[] {
  return points.toSpliced(points.findLastIndex(({ epoch }) => epoch <= point.epoch) + 1, 0, point)
}

/** The candles with another one, or with a newer state of one of them. */
function withCandle(candles: readonly CandlePoint[], candle: CandlePoint): readonly CandlePoint[] {
  const at = candles.findLastIndex(({ epoch }) => epoch === candle.epoch)
  return at < 0 ? withPoint(candles, candle) : candles.with(at, candle)
}
