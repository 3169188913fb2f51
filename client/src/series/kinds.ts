import type { TicksHistoryAnswer } from '../core/base/messages.ts'
import type { CandlePoint, Point } from '../core/sockets/series-shape.ts'
import { joinCandles, joinPrices, withCandle, withPoint, type Joined } from './series-join.ts'

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
