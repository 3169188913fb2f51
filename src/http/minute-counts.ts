const WINDOW_MS = 60_000
/** More than come in a minute, unless somebody makes them up. */
const MAX_KEYS = 100_000

/** Counts by key, in this process, in windows of one minute. */
export class MinuteCounts {
  readonly #counts = new Map<string, number>()
  readonly #maxKeys: number
  #endsAt = 0

  /** @param maxKeys keys that are counted at a time; one more begins all counts anew */
  constructor(maxKeys = MAX_KEYS) {
    this.#maxKeys = maxKeys
  }

  /** Seconds until the counts start again. */
  get secondsLeft(): number {
    return Math.max(1, Math.ceil((this.#endsAt - Date.now()) / 1000))
  }

  /** Counts one more. False when that is more than `limit`; 0 is no limit. */
  allows(key: string, limit: number): boolean {
    if (limit === 0) return true
    const now = Date.now()
    // Begun anew as well rather than filling the memory with keys.
    if (now >= this.#endsAt || this.#counts.size >= this.#maxKeys) {
      this.#counts.clear()
      this.#endsAt = now + WINDOW_MS
    }
    const count = (this.#counts.get(key) ?? 0) + 1
    if (count > limit) return false
    this.#counts.set(key, count)
    return true
  }
}
