import { backoffMs, type Backoff } from '../time/backoff.ts'

/** Consecutive failures that open the circuit. */
const THRESHOLD = 5
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 30_000

/** The pauses after consecutive failures of the provider. */
export const PROVIDER_BACKOFF: Backoff = { firstMs: FIRST_PAUSE_MS, longestMs: LONGEST_PAUSE_MS, jitter: 0.25 }

/**
 * The peer as a result shows it. `answers`: it has judged this request, so its failures are over, but what it said concerns
 * nobody else. `nothing`: neither that it works nor that it fails.
 */
export type Verdict = 'works' | 'answers' | 'fails' | 'nothing'

/**
 * Protects a failing peer from requests: after five consecutive failures, requests are refused for a while (open). Then a
 * single one is let through (half-open), which closes the circuit or opens it for twice as long. As long as all failures were
 * of one user, the requests of the others are let through, because the peer may fail for this user alone. The breaker also
 * limits concurrent requests, because each request to a peer that does not respond uses up a file descriptor.
 */
export class CircuitBreaker {
  readonly #maxConcurrent: number
  #running = 0
  #failures = 0
  /** The one user of whom all these failures were. */
  #failing: string | undefined
  /** Monotonic ms, like {@link #workedAt}: a time of day that is set back would keep the circuit open. */
  #openUntil = -Infinity
  #isProbing = false
  #workedAt = -Infinity

  constructor(maxConcurrent: number) {
    this.#maxConcurrent = maxConcurrent
  }

  get isOpen(): boolean {
    return this.#failures >= THRESHOLD
  }

  /** When the peer last worked (monotonic ms); -Infinity before that. */
  get workedAt(): number {
    return this.#workedAt
  }

  /** Milliseconds until the next try of this user makes sense; 0 if a request would be let through now. */
  retryAfterMs(user?: string): number {
    const leftMs = this.#openUntil - performance.now()
    const isOpen = this.isOpen && !this.#spares(user)
    if (isOpen && leftMs > 0) return leftMs
    const isBusy = isOpen ? this.#isProbing : this.#running >= this.#maxConcurrent
    return isBusy ? FIRST_PAUSE_MS : 0
  }

  /** Runs a user's request and counts its result. Returns undefined, and does not run it, while {@link retryAfterMs} is not 0. */
  async run<Result>(
    request: () => Promise<Result>,
    judge: (result: Result) => Verdict,
    user?: string,
  ): Promise<Result | undefined> {
    if (this.retryAfterMs(user) > 0) return undefined
    const isProbe = this.isOpen && !this.#spares(user)
    if (isProbe) this.#isProbing = true
    this.#running++
    try {
      const result = await request()
      const verdict = judge(result)
      if (verdict === 'works') this.succeed()
      else if (verdict === 'answers') this.#close()
      else if (verdict === 'fails') this.#fail(isProbe, user)
      return result
    } catch (error) {
      this.#fail(isProbe, user)
      throw error
    } finally {
      this.#running--
      if (isProbe) this.#isProbing = false
    }
  }

  /** Closes the circuit, because the peer is known to work. */
  succeed(): void {
    this.#close()
    this.#workedAt = performance.now()
  }

  #close(): void {
    this.#failures = 0
    this.#openUntil = -Infinity
  }

  /** Whether the failures may be no concern of this user's. */
  #spares(user: string | undefined): boolean {
    return user !== undefined && this.#failing !== undefined && this.#failing !== user
  }

  #fail(isProbe: boolean, user: string | undefined): void {
    // Requests that were under way when the circuit opened say nothing new when they fail, unless they are of another user.
    if (this.isOpen && !isProbe && !this.#spares(user)) return
    if (this.#failures === 0) this.#failing = user
    else if (this.#failing !== user) this.#failing = undefined
    this.#failures++
    if (this.isOpen) this.#openUntil = performance.now() + backoffMs(this.#failures - THRESHOLD, PROVIDER_BACKOFF)
  }
}
