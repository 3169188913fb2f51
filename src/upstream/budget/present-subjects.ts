import type { Clock } from './clock.ts'

/** With so many, an equal part is hardly ever more than one call. More of them would only cost memory. */
const MAX_PRESENT = 1024

/** The subjects that have asked this process for a call of one class a short time ago, whether they got it or not. */
export class PresentSubjects {
  readonly #clock: Clock
  readonly #presentMs: number
  /** When each asked last, the longest ago first. */
  readonly #askedAt = new Map<string, number>()

  /** @param presentMs for how long after its last call a subject counts as present */
  constructor(clock: Clock, presentMs: number) {
    this.#clock = clock
    this.#presentMs = presentMs
  }

  /** How many there are. */
  get count(): number {
    const since = this.#clock.now() - this.#presentMs
    for (const [subject, at] of this.#askedAt) {
      if (at >= since && this.#askedAt.size <= MAX_PRESENT) break
      this.#askedAt.delete(subject)
    }
    return this.#askedAt.size
  }

  /** Whether there are others than this one. */
  hasOthersThan(subject: string): boolean {
    const { count } = this
    return count > 1 || (count === 1 && !this.#askedAt.has(subject))
  }

  note(subject: string): void {
    // Removed first, so that it goes to the end.
    this.#askedAt.delete(subject)
    this.#askedAt.set(subject, this.#clock.now())
    if (this.#askedAt.size > MAX_PRESENT) void this.count
  }
}
