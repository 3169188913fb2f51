import type { Clock } from './clock.ts'

/**
 * Sees to it that nobody gets more than a quarter of what this process has while others go short. It looks at the time since
 * the last tokens came, and of those who went short also at the time before that.
 */
export class FairShare {
  readonly #clock: Clock
  readonly #memoryMs: number
  #beganAt = 0
  #had = 0
  readonly #taken = new Map<string, number>()
  /** Up to two who went short since the last tokens came, and those before them. */
  #short: string[] = []
  #shortBefore: string[] = []

  /** @param memoryMs when no more tokens come, everything begins anew after this time */
  constructor(clock: Clock, memoryMs: number) {
    this.#clock = clock
    this.#memoryMs = memoryMs
  }

  /** More tokens have come; this many are there now. */
  begin(had: number): void {
    this.#beganAt = this.#clock.now()
    this.#had = had
    this.#taken.clear()
    this.#shortBefore = this.#short
    this.#short = []
  }

  /** Whether this subject may take one more. */
  allows(subject: string): boolean {
    if (this.#clock.now() - this.#beganAt > this.#memoryMs) this.begin(this.#had)
    if ((this.#taken.get(subject) ?? 0) < Math.max(1, Math.floor(this.#had / 4))) return true
    const isAnother = (each: string): boolean => each !== subject
    return !this.#short.some(isAnother) && !this.#shortBefore.some(isAnother)
  }

  noteTaken(subject: string): void {
    this.#taken.set(subject, (this.#taken.get(subject) ?? 0) + 1)
  }

  noteShort(subject: string): void {
    if (this.#short.length < 2 && !this.#short.includes(subject)) this.#short.push(subject)
  }
}
