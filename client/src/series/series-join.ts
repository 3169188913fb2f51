import type { CandlePoint, Gap, Point } from '../core/sockets/series-shape.ts'

/** What a history and the stream beside it make of a series. */
export interface Joined<P> {
  readonly points: readonly P[]
  readonly gap?: Gap | undefined
  /** The history ends before the stream begins, so something may be missing between them. A later history has it. */
  readonly isBehind: boolean
  /** All that the stream brings from now on comes after these points. */
  readonly isSettled: boolean
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
export function joinCandles(history: readonly CandlePoint[], live: readonly CandlePoint[]): Joined<CandlePoint> {
  const last = history.at(-1)
  const [first] = live
  const gap = last && first && last.epoch < first.epoch ? { from: last.epoch, to: first.epoch } : undefined
  const isBehind = gap !== undefined || last === undefined
  const closed = new Set(history.slice(0, -1).map(({ epoch }) => epoch))
  const others = live.filter(({ epoch }) => !closed.has(epoch))
  return { points: others.reduce(withCandle, history), gap, isBehind, isSettled: !isBehind }
}

/** The points with another one, after those that are not later: it may have arrived late. */
export function withPoint<P extends { readonly epoch: number }>(points: readonly P[], point: P): readonly P[] {
  return points.toSpliced(points.findLastIndex(({ epoch }) => epoch <= point.epoch) + 1, 0, point)
}

/** The candles with another one, or with a newer state of one of them. */
export function withCandle(candles: readonly CandlePoint[], candle: CandlePoint): readonly CandlePoint[] {
  const at = candles.findLastIndex(({ epoch }) => epoch === candle.epoch)
  return at < 0 ? withPoint(candles, candle) : candles.with(at, candle)
}
