/** Counts what is under way, by key, and how much of it there may be. */
export class Permits {
  readonly #taken = new Map<string, number>()

  /** Takes one of `limit` permits. False when all are taken; else {@link release} must follow, once. */
  acquire(key: string, limit: number): boolean {
    const taken = this.#taken.get(key) ?? 0
    if (taken >= limit) return false
    this.#taken.set(key, taken + 1)
    return true
  }

  release(key: string): void {
    const left = (this.#taken.get(key) ?? 1) - 1
    if (left === 0) this.#taken.delete(key)
    else this.#taken.set(key, left)
  }
}
