const MIN_MS = 100
/** Less than the time that a browser waits for a connection (`PATIENCE_MS`). */
const MAX_MS = 4000

/** Upstream counts requests by the minute. It is asked again after a moment, and then less and less often. */
const MIN_PAUSE_MS = 1000
const MAX_PAUSE_MS = 30_000

/** When to try again: later after each failure, and never all at the same time. */
export class Backoff {
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  get isWaiting(): boolean {
    return this.#timer !== undefined
  }

  /** Whether the last attempt has failed. */
  get hasFailed(): boolean {
    return this.#failures > 0
  }

  /** Calls back after a pause, whose upper limit doubles with each failure. */
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

  /** Begins with short pauses again. */
  reset(): void {
    this.#failures = 0
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

/** How long to wait after a refusal. @param refusals how many there were before it */
export function pauseMs(refusals: number): number {
  return Math.min(MIN_PAUSE_MS * 2 ** refusals, MAX_PAUSE_MS) * (0.5 + Math.random() / 2)
}
