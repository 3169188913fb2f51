const MIN_MS = 100
/** Less than a browser has to wait for a connection. */
const MAX_MS = 4000

/** When to try again: later after each failure, and never all at the same time. */
export class Backoff {
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  get isWaiting(): boolean {
    return this.#timer !== undefined
  }

  /** Calls back after the next time. */
  wait(onOver: () => void): void {
    const longest = Math.min(MIN_MS * 2 ** this.#failures++, MAX_MS)
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        onOver()
      },
      longest * (0.5 + Math.random() / 2),
    )
  }

  /** Begins with short times again. */
  reset(): void {
    this.#failures = 0
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
