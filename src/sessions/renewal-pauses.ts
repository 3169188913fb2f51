import { LRUCache } from 'lru-cache'
import { PROVIDER_BACKOFF } from '../oauth/circuit-breaker.ts'
import { backoffMs } from '../time/backoff.ts'

/** A session beyond this limit is forgotten, and is then tried again a little early. */
const MAX_SESSIONS = 10_000
const TTL_MS = 60_000

/** Times are monotonic ms. */
interface Failure {
  /** Consecutive failures. */
  readonly count: number
  readonly failedAt: number
  readonly retryAt: number
  readonly isOfProvider: boolean
}

/** Pauses the renewal of a session after a failure, longer with every consecutive failure. */
export class RenewalPauses {
  readonly #failures = new LRUCache<string, Failure>({ max: MAX_SESSIONS, ttl: TTL_MS })

  /**
   * Begins a pause.
   * @param isOfProvider the failure concerns any session, so the pause is over as soon as the provider works for one. If the
   * provider has worked since the session's last failure, it concerns this session alone
   * @param workedAt when the provider had last worked, before it was asked (monotonic ms)
   * @returns the length of the pause in ms
   */
  begin(key: string, isOfProvider: boolean, workedAt: number): number {
    const { count, failedAt: before } = this.#failures.get(key) ?? { count: 0, failedAt: Infinity }
    const pause = backoffMs(count, PROVIDER_BACKOFF)
    const failedAt = performance.now()
    const isOfAny = isOfProvider && workedAt <= before
    this.#failures.set(key, { count: count + 1, failedAt, retryAt: failedAt + pause, isOfProvider: isOfAny })
    return pause
  }

  /** Begins a pause that concerns this session alone. */
  beginFor(key: string, ms: number): void {
    const failedAt = performance.now()
    this.#failures.set(key, { count: 0, failedAt, retryAt: failedAt + ms, isOfProvider: false })
  }

  /** The rest of a session's pause; 0 if there is none. @param workedAt when the provider last worked (monotonic ms) */
  remainingMs(key: string, workedAt: number): number {
    const failure = this.#failures.get(key)
    if (failure === undefined || (failure.isOfProvider && workedAt > failure.failedAt)) return 0
    return Math.max(0, failure.retryAt - performance.now())
  }

  end(key: string): void {
    this.#failures.delete(key)
  }
}
