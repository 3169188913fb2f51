import { Problem } from '../problem.ts'

/** Far more than a page has open at once, far less than all connections to upstream, which everybody shares. */
const MAX_PER_SESSION = 100

/** Counts the calls of a session that are under way, so that one user cannot keep upstream from all the others. */
export class CallsInFlight {
  readonly #counts = new Map<string, number>()

  /** @throws Problem rate_limited; else {@link leave} must follow */
  enter(sessionKey: string): void {
    const count = this.#counts.get(sessionKey) ?? 0
    if (count >= MAX_PER_SESSION) throw new Problem('rate_limited', { retryAfterSeconds: 1 })
    this.#counts.set(sessionKey, count + 1)
  }

  leave(sessionKey: string): void {
    const left = (this.#counts.get(sessionKey) ?? 1) - 1
    if (left === 0) this.#counts.delete(sessionKey)
    else this.#counts.set(sessionKey, left)
  }
}
