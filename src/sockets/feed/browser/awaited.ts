/** What a browser waits for, in bytes: its open requests, and answers that will come. They count as bytes that wait for it. */
export class Awaited {
  readonly #onMore: () => void
  readonly #onLess: () => void
  readonly #timers = new Set<NodeJS.Timeout>()
  #bytes = 0

  constructor(onMore: () => void, onLess: () => void) {
    this.#onMore = onMore
    this.#onLess = onLess
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @returns a function that ends this. After the longest time, if there is one, it ends by itself */
  add(bytes: number, longestMs?: number): () => void {
    let isOver = false
    const over = (): void => {
      if (isOver) return
      isOver = true
      if (timer !== undefined) this.#timers.delete(timer)
      clearTimeout(timer)
      this.#bytes -= bytes
      this.#onLess()
    }
    const timer = longestMs === undefined ? undefined : setTimeout(over, longestMs).unref()
    if (timer !== undefined) this.#timers.add(timer)
    this.#bytes += bytes
    this.#onMore()
    return over
  }

  end(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }
}
