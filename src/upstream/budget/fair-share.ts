import type { Clock } from './clock.ts'

/** Sees to it that nobody gets more than a quarter of the tokens that come, while others who have had less go short. */
export class FairShare {
  readonly #clock: Clock
  readonly #memoryMs: number
  #since = 0
  /** Tokens that have come. Older ones count for less, as those taken do. */
  #came = 0
  readonly #taken = new Map<string, number>()
  /** When the last two went short who had not had a quarter themselves. */
  readonly #shortAt = new Map<string, number>()

  /** @param memoryMs after this time, tokens that came or were taken count for half; who went short is forgotten */
  constructor(clock: Clock, memoryMs: number) {
    this.#clock = clock
    this.#memoryMs = memoryMs
  }

  /** More tokens have come. */
  add(count: number): void {
    this.#forget()
    this.#came += count
  }

  /** Whether this subject may take one more. */
  allows(subject: string): boolean {
    this.#forget()
    if (this.#isWithinQuarter(subject)) return true
    const since = this.#clock.now() - this.#memoryMs
    return ![...this.#shortAt].some(([each, at]) => each !== subject && at > since)
  }

  noteTaken(subject: string): void {
    this.#taken.set(subject, (this.#taken.get(subject) ?? 0) + 1)
  }

  /** Nothing is kept for those who have had a quarter: several greedy subjects would keep it from each other. */
  noteShort(subject: string): void {
    this.#forget()
    this.#shortAt.delete(subject)
    if (!this.#isWithinQuarter(subject)) return
    this.#shortAt.set(subject, this.#clock.now())
    const [oldest] = this.#shortAt.keys()
    if (this.#shortAt.size > 2 && oldest !== undefined) this.#shortAt.delete(oldest)
  }

  #isWithinQuarter(subject: string): boolean {
    return (this.#taken.get(subject) ?? 0) + 1 <= Math.max(1, this.#came / 4)
  }

  #forget(): void {
    const halves = Math.floor((this.#clock.now() - this.#since) / this.#memoryMs)
    if (halves <= 0) return
    this.#since += halves * this.#memoryMs
    const part = 0.5 ** halves
    this.#came *= part
    for (const [subject, count] of this.#taken) {
      if (count * part < 0.5) this.#taken.delete(subject)
      else this.#taken.set(subject, count * part)
    }
  }
}
