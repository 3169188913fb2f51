const MAX_BYTES = 1024
const MAX_PER_MINUTE = 10
const MINUTE_MS = 60_000

/** How much a browser may send to a socket that ignores it. */
export class MessageLimit {
  #count = 0
  #windowEndsAt = 0

  /** Counts a message. False when it is too large, or one too many in a minute. */
  allows(bytes: number): boolean {
    const now = performance.now()
    if (now >= this.#windowEndsAt) {
      this.#count = 0
      this.#windowEndsAt = now + MINUTE_MS
    }
    this.#count++
    return bytes <= MAX_BYTES && this.#count <= MAX_PER_MINUTE
  }
}
