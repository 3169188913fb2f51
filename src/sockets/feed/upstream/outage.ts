import { CLOSE, type CloseStatus } from '../../close-codes.ts'

/** How long the browsers of a lost connection wait for it to come back before they are closed all the same. */
export const PATIENCE_MS = 5000

/** A browser that can be closed. */
export interface Departing {
  endLater(close: CloseStatus, ms: number): void
}

/**
 * The time in which a connection is away, and those that it concerns. Browsers that may have missed something are closed with
 * 1013 once the connection is back, spread over some time so that they do not all return in one moment.
 */
export class Outage {
  readonly #spreadMs: number
  readonly #onGiveUp: () => void
  readonly #departing = new Set<Departing>()
  #patience: NodeJS.Timeout | undefined

  /** @param onGiveUp called once something has waited for the connection for 5 seconds */
  constructor(spreadMs: number, onGiveUp: () => void) {
    this.#spreadMs = spreadMs
    this.#onGiveUp = onGiveUp
  }

  /** Notes that something waits for the connection. */
  wait(): void {
    this.#patience ??= setTimeout(() => this.#giveUp(), PATIENCE_MS).unref()
  }

  /** Notes a browser that may have missed something. It is closed when the outage is over, or with those that give up. */
  depart(browser: Departing): void {
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

  #giveUp(): void {
    this.#onGiveUp()
    this.over()
  }
}
