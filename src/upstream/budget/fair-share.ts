/**
 * Sees to it that nobody gets more than a quarter of what this process has while others go short. One that has lost the
 * race for a token is remembered until the next tokens but one have come.
 */
export class FairShare {
  #had = 0
  #taken = new Map<string, number>()
  /** Up to two who went short since the last tokens came, and those before them. */
  #short: string[] = []
  #shortBefore: string[] = []

  /** More tokens have come; this many are there now. */
  begin(had: number): void {
    this.#had = had
    this.#taken.clear()
    this.#shortBefore = this.#short
    this.#short = []
  }

  /** Whether this subject may take one more. */
  allows(subject: string): boolean {
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
