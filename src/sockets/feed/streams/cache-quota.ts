/** The ordinary answers of a few seconds are far smaller. Only browsers that always ask for something else come near it. */
const MAX_KEPT_BYTES = 16 * 1_048_576

/** The answers that a process keeps for others. Together, and with their requests, they take a limited amount of memory. */
export class CacheQuota {
  #bytes = 0

  /**
   * Keeps something for a while, if there is room.
   * @param onOver called when the time is over
   * @returns false when there is no room, so that it must not be kept
   */
  keep(bytes: number, ms: number, onOver: () => void): boolean {
    if (ms === 0 || this.#bytes + bytes > MAX_KEPT_BYTES) return false
    this.#bytes += bytes
    setTimeout(() => {
      this.#bytes -= bytes
      onOver()
    }, ms).unref()
    return true
  }
}
