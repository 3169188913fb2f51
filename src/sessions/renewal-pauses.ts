import { LRUCache } from 'lru-cache'
import { pauseMs } from '../oauth/circuit-breaker.ts'

/** One that is forgotten is tried again a little early. */
const MAX_SESSIONS = 10_000
const TTL_MS = 60_000

/** Times are epoch ms. */
interface Failure {
  /** In a row. */
  readonly times: number
  readonly failedAt: number
  readonly retryAt: number
  readonly isOfProvider: boolean
}

/** Sessions whose renewal has just failed, and for how long each is left alone: longer with every failure in a row. */
export class RenewalPauses {
  readonly #failures = new LRUCache<string, Failure>({ max: MAX_SESSIONS, ttl: TTL_MS })

  /**
   * Begins a pause.
   * @param isOfProvider it would have met any session, so that it is over as soon as the provider works for one
   * @returns how long it is, in ms
   */
  begin(key: string, isOfProvider: boolean): number {
    const times = (this.#failures.get(key)?.times ?? 0) + 1
    const pause = pauseMs(times)
    const failedAt = Date.now()
    this.#failures.set(key, { times, failedAt, retryAt: failedAt + pause, isOfProvider })
    return pause
  }

  /** Milliseconds that are left of a session's pause; 0 without one. @param workedAt when the provider last worked */
  left(key: string, workedAt: number): number {
    const failure = this.#failures.get(key)
    if (failure === undefined || (failure.isOfProvider && workedAt > failure.failedAt)) return 0
    return Math.max(0, failure.retryAt - Date.now())
  }

  end(key: string): void {
    this.#failures.delete(key)
  }
}
