import type { Clock } from './clock.ts'

/** Sees to it that nobody gets more than a quarter of the tokens that came last, while others go short. */
export class FairShare {
  readonly #clock: Clock
  readonly #memoryMs: number
  #beganAt = 0
  #had = 0
  readonly #taken = new Map<string, number>()
  /** When the last two went short. */
  readonly #shortAt = new Map<string, number>()

  /** @param memoryMs for how long it remembers who had tokens, if no more come, and who went short */
  constructor(clock: Clock, memoryMs: number) {
    this.#clock = clock
    this.#memoryMs = memoryMs
  }

  /** More tokens have come; this many are there now. */
  begin(had: number): void {
    this.#beganAt = this.#clock.now()
    this.#had = had
    this.#taken.clear()
  }

  /** Whether this subject may take one more. */
  allows(subject: string): boolean {
    if (this.#clock.now() - this.#beganAt > this.#memoryMs) this.begin(this.#had)
    if ((this.#taken.get(subject) ?? 0) < Math.max(1, Math.floor(this.#had / 4))) return true
    const since = this.#clock.now() - this.#memoryMs
    return ![...this.#shortAt].some(([each, at]) => each !== subject && at > since)
  }

  noteTaken(subject: string): void {
    this.#taken.set(subject, (this.#taken.get(subject) ?? 0) + 1)
  }

  noteShort(subject: string): void {
    this.#shortAt.delete(subject)
    this.#shortAt.set(subject, this.#clock.now())
    const [oldest] = this.#shortAt.keys()
    if (this.#shortAt.size > 2 && oldest !== undefined) this.#shortAt.delete(oldest)
  }
}
