import { backoffMs, type Backoff as Pauses } from '../../../time/backoff.ts'

/** After a connection was lost. The longest is less than the time that a browser waits for a connection (`PATIENCE_MS`). */
export const RECONNECT: Pauses = { firstMs: 100, longestMs: 4000, jitter: 0.5 }
/** After a refusal. Upstream counts requests by the minute, so it is asked again after a moment, and then less and less often. */
export const REFUSED: Pauses = { firstMs: 1000, longestMs: 30_000, jitter: 0.5 }

/** When to try again: later after each failure, and never all at the same time. */
export class Backoff {
  readonly #pauses: Pauses
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  constructor(pauses: Pauses) {
    this.#pauses = pauses
  }

  get isWaiting(): boolean {
    return this.#timer !== undefined
  }

  /** Whether the last attempt has failed. */
  get hasFailed(): boolean {
    return this.#failures > 0
  }

  /** Calls back after a pause that grows with each failure. While one lasts, no other begins. */
  wait(onOver: () => void): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined
        onOver()
      },
      backoffMs(this.#failures++, this.#pauses),
    ).unref()
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
