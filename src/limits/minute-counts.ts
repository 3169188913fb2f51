const WINDOW_MS = 60_000
/** More keys than a minute brings, unless an attacker makes them up. */
const MAX_KEYS = 100_000

/** Counts by key, within this process, in windows of one minute, or of another length. */
export class MinuteCounts {
  readonly #counts = new Map<string, number>()
  readonly #maxKeys: number
  readonly #windowMs: number
  /** By the monotonic clock: a time of day that is set back would not let the minute end. */
  #endsAt = 0

  /** @param maxKeys once this many keys are counted, the next count of another key resets them all */
  constructor(maxKeys = MAX_KEYS, windowMs = WINDOW_MS) {
    this.#maxKeys = maxKeys
    this.#windowMs = windowMs
  }

  /** Seconds until the counts reset. */
  get secondsLeft(): number {
    return Math.max(1, Math.ceil((this.#endsAt - performance.now()) / 1000))
  }

  /** Whether a key has as many events as `limit` already. Counts nothing. */
  isFull(key: string, limit: number): boolean {
    return performance.now() < this.#endsAt && (this.#counts.get(key) ?? 0) >= limit
  }

  /** Counts an event, or as many as `weight`. Returns false if that exceeds `limit`; a limit of 0 allows everything. */
  allows(key: string, limit: number, weight = 1): boolean {
    if (limit === 0) return true
    const now = performance.now()
    // Too many keys also reset the counts. Without this, made-up keys could fill the memory.
    if (now >= this.#endsAt || (this.#counts.size >= this.#maxKeys && !this.#counts.has(key))) {
      this.#counts.clear()
      this.#endsAt = now + this.#windowMs
    }
    const count = (this.#counts.get(key) ?? 0) + weight
    if (count > limit) return false
    this.#counts.set(key, count)
    return true
  }
}
