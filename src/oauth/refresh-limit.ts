/** This many users whom the provider limits within this time pause all. */
const USERS = 3
const WITHIN_MS = 10_000
/** The time between two tries while all are paused. */
const PROBE_MS = 1000
/** Users who are remembered; those limited longest ago are forgotten first. */
const MAX_USERS = 10_000

/**
 * The 429s of the token endpoint, as this process sees them. A 429 concerns the user who got it. Only where several users get one
 * within a short time are the refreshes of all held back, but for one try a second of a user who is not limited.
 */
export class RefreshLimit {
  /** When users were limited, and until when (monotonic ms). */
  readonly #users = new Map<string, { readonly at: number; readonly until: number }>()
  #pausesAll = false
  #nextTryAt = -Infinity

  /** The time until a refresh of this user may be tried (ms); 0 if that is now. */
  retryAfterMs(user: string): number {
    if (!this.#pausesAll) return 0
    const notBefore = Math.max(this.#nextTryAt, this.#users.get(user)?.until ?? -Infinity)
    return Math.max(0, notBefore - performance.now())
  }

  /** The same for a refresh that is made if the time is 0. */
  take(user: string): number {
    const leftMs = this.retryAfterMs(user)
    if (leftMs === 0 && this.#pausesAll) this.#nextTryAt = performance.now() + PROBE_MS
    return leftMs
  }

  /** The provider has answered a refresh of this user with 429. @param waitMs how long it asks the user to wait */
  refused(user: string, waitMs: number): void {
    const now = performance.now()
    const until = Math.max(now + waitMs, this.#users.get(user)?.until ?? -Infinity)
    // Deleted first, so that the map is ordered by time.
    this.#users.delete(user)
    const [oldest] = this.#users.size < MAX_USERS ? [] : this.#users.keys()
    if (oldest !== undefined) this.#users.delete(oldest)
    this.#users.set(user, { at: now, until })
    const recent = [...this.#users.values()].slice(-USERS)
    if (recent.length === USERS && recent.every(({ at }) => at > now - WITHIN_MS)) this.#pausesAll = true
  }

  /** The provider has answered a refresh otherwise, or has issued tokens. */
  lift(): void {
    if (!this.#pausesAll) return
    this.#pausesAll = false
    this.#users.clear()
  }
}
