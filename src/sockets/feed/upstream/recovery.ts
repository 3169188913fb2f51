import { backoffMs, type Backoff as Pauses } from '../../../time/backoff.ts'
import { CLOSE } from '../../close-codes.ts'
import type { Browser } from './browser.ts'

/** After a connection was lost. The longest is less than the time that a browser waits for a connection (`PATIENCE_MS`). */
export const RECONNECT: Pauses = { firstMs: 100, longestMs: 4000, jitter: 0.5 }

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

  reset(): void {
    this.#failures = 0
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

/** How long the browsers of a lost connection wait for it to come back before they are closed all the same. */
export const PATIENCE_MS = 5000

/**
 * The time in which a connection is away, and the browsers that it concerns. Browsers that may have missed something are closed with
 * 1013 once the connection is back, spread over some time so that they do not all return in one moment.
 */
export class Outage {
  readonly #spreadMs: number
  readonly #onLost: () => void
  readonly #departing = new Set<Browser>()
  #patience: NodeJS.Timeout | undefined

  /** @param onLost called once something has waited for the connection for 5 seconds */
  constructor(spreadMs: number, onLost: () => void) {
    this.#spreadMs = spreadMs
    this.#onLost = onLost
  }

  wait(): void {
    this.#patience ??= setTimeout(() => this.#lose(), PATIENCE_MS).unref()
  }

  /** Notes a browser that may have missed something. It is closed when the outage is over. */
  depart(browser: Browser): void {
    browser.hasMissed = true
    this.#departing.add(browser)
    this.wait()
  }

  /** The connection is back, or nothing waits for it any more. */
  over(): void {
    clearTimeout(this.#patience)
    this.#patience = undefined
    for (const browser of this.#departing) browser.endLater(CLOSE.upstreamLost, Math.random() * this.#spreadMs)
    this.#departing.clear()
  }

  #lose(): void {
    this.#onLost()
    this.over()
  }
}
