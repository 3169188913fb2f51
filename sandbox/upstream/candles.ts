import type { Tick } from './market.ts'

export interface Candle {
  /** The second in which the candle begins. */
  epoch: number
  open: number
  high: number
  low: number
  close: number
}

/** Ticks, oldest first, as candles of so many seconds. */
export function candles(ticks: readonly Tick[], seconds: number): Candle[] {
  const all: Candle[] = []
  for (const tick of ticks) {
    const current = all.at(-1)
    const candle = candleAt(tick, seconds, current)
    if (candle.epoch === current?.epoch) all[all.length - 1] = candle
    else all.push(candle)
  }
  return all
}

/** The candle after one more tick: the current one, grown, or the next. */
export function candleAt({ epoch, quote }: Tick, seconds: number, current: Candle | undefined): Candle {
  const begins = epoch - (epoch % seconds)
  if (current?.epoch !== begins) return { epoch: begins, open: quote, high: quote, low: quote, close: quote }
  return {
    ...current,
    high: Math.max(current.high, quote),
    low: Math.min(current.low, quote),
    close: quote,
  }
}
