/**
 * Counts events in windows of a fixed length. A window begins with its first event and is measured by the monotonic clock: a
 * time of day that is set back would not let it end.
 */
export class Window {
  readonly #lengthMs: number
  #endsAt = -Infinity
  #count = 0

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs
  }

  /** How long the current window still lasts (ms); 0 once it is over. */
  get leftMs(): number {
    return Math.max(0, this.#endsAt - performance.now())
  }

  /** Counts an event. Returns false, and counts nothing, when this window already has `limit` of them. */
  allows(limit: number): boolean {
    const now = performance.now()
    if (now >= this.#endsAt) {
      this.#endsAt = now + this.#lengthMs
      this.#count = 0
    }
    if (this.#count >= limit) return false
    this.#count++
    return true
  }
}
