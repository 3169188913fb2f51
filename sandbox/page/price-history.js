/** The ticks of a symbol of the last hour, and candles made of them. */

const KEEP_MS = 3_600_000
/** The number of ticks to ask for: an hour at one tick a second. */
export const HISTORY_TICKS = 3600
/** The memory limit for symbols with several ticks a second. */
const MAX_TICKS = 20_000

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

  /** Adds a tick, unless it is older than the last one. @returns false if it is */
  add(tick) {
    const last = this.last
    if (last && tick.time < last.time) return false
    this.#points.push(pointOf(tick))
    if (this.#points.length > MAX_TICKS) this.#points = this.since(KEEP_MS).slice(-MAX_TICKS / 2)
    return true
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
