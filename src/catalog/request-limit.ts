import { Problem } from '../problem.ts'

const WINDOW_MS = 60_000

/** API_REQUESTS_PER_MINUTE: counts what each session asks of this process, in windows of one minute. */
export class RequestLimit {
  readonly #most: number
  readonly #counts = new Map<string, number>()
  #windowEndsAt = 0

  /** @param most 0 for no limit */
  constructor(most: number) {
    this.#most = most
  }

  /** Counts one request. @throws Problem rate_limited */
  count(sessionKey: string): void {
    if (this.#most === 0) return
    const now = Date.now()
    if (now >= this.#windowEndsAt) {
      this.#counts.clear()
      this.#windowEndsAt = now + WINDOW_MS
    }
    const count = (this.#counts.get(sessionKey) ?? 0) + 1
    if (count > this.#most) {
      throw new Problem('rate_limited', { retryAfterSeconds: Math.ceil((this.#windowEndsAt - now) / 1000) })
    }
    this.#counts.set(sessionKey, count)
  }
}
