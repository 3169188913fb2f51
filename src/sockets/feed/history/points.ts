import type { UpstreamMessage } from '../wire/index.ts'

/** A place in a series of prices. */
export interface Point {
  /** Seconds. Of a candle, when it opened. */
  readonly epoch: number
  /** The price or, of a candle, its open, high, low and close. Equal prices have one spelling here. */
  readonly value: string
}

/** The end of a history. */
export interface Tail {
  readonly epoch: number
  /** The values of its last epoch, in order. */
  readonly values: readonly string[]
  /** Whether the history has an earlier epoch too, and so all values that the last one had by then. */
  readonly isWhole: boolean
}

interface Candle {
  readonly epoch?: unknown
  readonly open_time?: unknown
  readonly open?: unknown
  readonly high?: unknown
  readonly low?: unknown
  readonly close?: unknown
}

interface Body {
  readonly tick?: { readonly epoch?: unknown; readonly quote?: unknown } | null
  readonly ohlc?: Candle | null
  readonly history?: { readonly times?: unknown; readonly prices?: unknown } | null
  readonly candles?: unknown
}

/** The point of a stream message, a `tick` or an `ohlc`. Undefined for any other message. */
export function pointOf(message: UpstreamMessage): Point | undefined {
  const { tick, ohlc } = parsed(message)
  const point =
    tick === undefined || tick === null
      ? { epoch: numberOf(ohlc?.open_time), value: valueOf(ohlc) }
      : { epoch: numberOf(tick.epoch), value: String(numberOf(tick.quote)) }
  return Number.isFinite(point.epoch) ? point : undefined
}

/** The end of a `history` or of `candles`. Undefined when there is none, or when it is empty. */
export function tailOf(message: UpstreamMessage): Tail | undefined {
  const points = pointsOf(parsed(message))
  const last = points.at(-1)
  if (last === undefined) return undefined
  const { epoch } = last
  const first = points.findLastIndex((point) => point.epoch !== epoch) + 1
  return { epoch, values: points.slice(first).map(({ value }) => value), isWhole: first > 0 }
}

function pointsOf({ history, candles }: Body): Point[] {
  if (Array.isArray(candles)) {
    return candles.map((candle: Candle | null) => ({ epoch: numberOf(candle?.epoch), value: valueOf(candle) }))
  }
  const { times, prices } = history ?? {}
  if (!Array.isArray(times) || !Array.isArray(prices)) return []
  return times.map((time, index) => ({ epoch: numberOf(time), value: String(numberOf(prices[index])) }))
}

/** Only for comparing: what browsers get is never parsed. */
function parsed({ body }: UpstreamMessage): Body {
  return JSON.parse(`{${body.toString()}`) as Body
}

function valueOf(candle: Candle | null | undefined): string {
  const { open, high, low, close } = candle ?? {}
  return [open, high, low, close].map(numberOf).join(' ')
}

/** Prices are numbers or, in candles of a stream, strings. The conversion of an object might throw. */
function numberOf(value: unknown): number {
  return typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN
}
