import type { Tick } from './market.ts'

export interface Candle {
  /** The start of the candle in epoch seconds. */
  epoch: number
  open: number
  high: number
  low: number
  close: number
}

/** Combines ticks into candles of this length. Both are in order, oldest first. */
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

/** Adds a tick to the current candle. @returns the updated candle, or a new one if the current one has ended */
export function candleAt({ epoch, quote }: Tick, seconds: number, current: Candle | undefined): Candle {
  const start = epoch - (epoch % seconds)
  if (current?.epoch !== start) return { epoch: start, open: quote, high: quote, low: quote, close: quote }
  return {
    ...current,
    high: Math.max(current.high, quote),
    low: Math.min(current.low, quote),
    close: quote,
  }
}
