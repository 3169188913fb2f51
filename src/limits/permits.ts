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
  /** Those who wait for a permit of each key, in their order. */
  readonly #lines = new Map<string, Set<() => void>>()

  /** Takes one of `limit` permits. Returns false if all are taken; otherwise the caller must {@link release} it once. */
  acquire(key: string, limit: number): boolean {
    const taken = this.#taken.get(key) ?? 0
    if (taken >= limit) return false
    this.#taken.set(key, taken + 1)
    return true
  }

  /** The same, but waits for one that is free. Resolves with false once the signal is aborted. */
  async waitFor(key: string, limit: number, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      if (this.acquire(key, limit)) return true
      await this.#turn(key, signal)
    }
    // It may have been the turn of this one.
    this.#callNext(key)
    return false
  }

  release(key: string): void {
    const left = (this.#taken.get(key) ?? 1) - 1
    if (left === 0) this.#taken.delete(key)
    else this.#taken.set(key, left)
    this.#callNext(key)
  }

  #turn(key: string, signal: AbortSignal): Promise<void> {
    const line = this.#lines.get(key) ?? new Set()
    this.#lines.set(key, line)
    return new Promise((resolve) => {
      const called = (): void => {
        signal.removeEventListener('abort', called)
        if (line.delete(called) && line.size === 0) this.#lines.delete(key)
        resolve()
      }
      line.add(called)
      signal.addEventListener('abort', called)
    })
  }

  #callNext(key: string): void {
    const [next] = this.#lines.get(key) ?? []
    next?.()
  }
}
