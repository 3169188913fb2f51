import { Window } from '../../../time/window.ts'

/** More messages in a second than any page sends. A browser that sends more is read no faster, so that others have their turn. */
const MESSAGES_PER_SECOND = 200

/** How fast a browser may go. */
export class Pace {
  readonly #requestsPerMinute: number
  readonly #minute = new Window(60_000)
  readonly #second = new Window(1000)
  #timer: NodeJS.Timeout | undefined

  /** @param requestsPerMinute for what goes upstream */
  constructor(requestsPerMinute: number) {
    this.#requestsPerMinute = requestsPerMinute
  }

  /** True while no more messages should be read. */
  get isExceeded(): boolean {
    return this.#timer !== undefined
  }

  /** Counts a request that goes upstream. False when it exceeds the limit of this minute. */
  spend(): boolean {
    return this.#minute.allows(this.#requestsPerMinute)
  }

  /** Counts a message. @returns false when no more should be read until `onReady` is called */
  received(onReady: () => void): boolean {
    if (this.#second.allows(MESSAGES_PER_SECOND)) return true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      onReady()
    }, this.#second.leftMs)
    return false
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
