/** More messages in a second than any page sends. A browser that sends more is read no faster, so that others have their turn. */
const MESSAGES_PER_SECOND = 200
const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** How fast a browser may go. */
export class Pace {
  readonly #requestsPerMinute: number
  #minuteEndsAt = 0
  #spent = 0
  #secondEndsAt = 0
  #messages = 0
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
    const now = performance.now()
    if (now >= this.#minuteEndsAt) {
      this.#minuteEndsAt = now + MINUTE_MS
      this.#spent = 0
    }
    if (this.#spent >= this.#requestsPerMinute) return false
    this.#spent++
    return true
  }

  /** Counts a message. @returns false when no more should be read until `onReady` is called */
  received(onReady: () => void): boolean {
    const now = performance.now()
    if (now >= this.#secondEndsAt) {
      this.#secondEndsAt = now + SECOND_MS
      this.#messages = 0
    }
    if (++this.#messages <= MESSAGES_PER_SECOND) return true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      onReady()
    }, this.#secondEndsAt - now)
    return false
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
