/** Gives a permit back. Only the first call counts. */
export type Release = () => void

/** Lets the first call of a release count alone. */
export function once(release: Release): Release {
  let isReleased = false
  return () => {
    if (isReleased) return
    isReleased = true
    release()
  }
}

/** A semaphore for each key. */
export class Permits {
  readonly #taken = new Map<string, number>()

  /** Takes one of `limit` permits. Returns false if all are taken; otherwise the caller must {@link release} it once. */
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
