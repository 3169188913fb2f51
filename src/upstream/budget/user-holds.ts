import type { Clock } from './clock.ts'

/** More users than upstream can refuse within a minute. */
const MAX_USERS = 10_000

/** The users whom this process holds back, and until when, on the monotonic clock. */
export class UserHolds {
  readonly #clock: Clock
  readonly #until = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many users are held back. */
  get size(): number {
    const now = this.#clock.now()
    for (const [name, until] of this.#until) if (until <= now) this.#until.delete(name)
    return this.#until.size
  }

  /** Holds a user back for at least this much longer. */
  hold(name: string, ms: number): void {
    if (ms <= 0) return
    const until = Math.max(this.#until.get(name) ?? 0, this.#clock.now() + ms)
    const [oldest] = this.#until.size < MAX_USERS ? [] : this.#until.keys()
    if (oldest !== undefined) this.#until.delete(oldest)
    this.#until.set(name, until)
  }

  /** For how much longer a user is held back (ms); 0 or less for a user who is not. */
  leftMs(name: string): number {
    return (this.#until.get(name) ?? -Infinity) - this.#clock.now()
  }
}
