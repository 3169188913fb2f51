import { CLOSE, type CloseStatus } from '../../close-codes.ts'

/** How long the browsers of a lost connection wait for it to come back before they are closed all the same. */
export const PATIENCE_MS = 5000

/** A browser that can be closed. */
export interface Departing {
  end(close: CloseStatus): void
}

/**
 * The browsers that may have missed something because a connection was lost. They are closed with 1013 once the connection is
 * back, spread over some time so that they do not all return in one moment.
 */
export class Departures {
  readonly #spreadMs: number
  readonly #waiting = new Set<Departing>()
  readonly #patience = new Patience(() => this.release())

  constructor(spreadMs: number) {
    this.#spreadMs = spreadMs
  }

  /** Notes a browser, which is closed after {@link release}. If that is not called within 5 seconds, it happens by itself. */
  add(browser: Departing): void {
    this.#waiting.add(browser)
    this.#patience.start()
  }

  /** Begins to close the waiting browsers: the connection is back. */
  release(): void {
    this.#patience.stop()
    for (const browser of this.#waiting) {
      setTimeout(() => browser.end(CLOSE.upstreamLost), Math.random() * this.#spreadMs).unref()
    }
    this.#waiting.clear()
  }
}

/** Calls back once something has waited for a connection for as long as a browser waits at most. */
export class Patience {
  readonly #onLost: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(onLost: () => void) {
    this.#onLost = onLost
  }

  /** Starts the wait, unless it has begun. */
  start(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#onLost()
    }, PATIENCE_MS).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
