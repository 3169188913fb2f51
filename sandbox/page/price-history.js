/** The ticks of a symbol of the last hour, and candles made of them. */

/** How many ticks are shown at most: those of an hour at one tick a second. */
export const HISTORY_TICKS = 3600

/**
 * A point of a chart; times in milliseconds. A tick has only one price.
 * @typedef {{ time: number, open: number, high: number, low: number, price: number }} Point
 */

export class PriceHistory {
  #points = []

  /** @param ticks [{ time, price }] in order */
  set(ticks) {
    this.#points = ticks.map(pointOf)
  }

  /** @returns {Point | undefined} */
  get last() {
    return this.#points.at(-1)
  }

  /** The ticks of this many milliseconds up to now. @returns {Point[]} */
  since(ms) {
    const from = (this.last?.time ?? 0) - ms
    return this.#points.slice(this.#points.findLastIndex(({ time }) => time < from) + 1)
  }

  /** The candles of this many milliseconds up to now. @returns {Point[]} */
  candles(ms, lengthMs) {
    const candles = []
    for (const { time, price } of this.since(ms)) {
      const start = time - (time % lengthMs)
      const current = candles.at(-1)
      if (current?.time !== start) candles.push(pointOf({ time: start, price }))
      else {
        current.high = Math.max(current.high, price)
        current.low = Math.min(current.low, price)
        current.price = price
      }
    }
    return candles
  }
}

function pointOf({ time, price }) {
  return { time, open: price, high: price, low: price, price }
}
