/** More than any limit: while this is awaited, nothing is read. */
const EVERYTHING = 2 ** 48
/**
 * What an answer counts whose size is not known yet: a long history has as much. The shared connection cannot be paused for one
 * browser, so everything that the browser has asked for arrives, whether it reads or not.
 */
const ANSWER_BYTES = 131_072
/** An upstream that is slower sends no flood. Other messages of the browser, its pings above all, must not wait for it. */
const ANSWER_MS = 3000

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

  add(bytes: number): void {
    this.#bytes += bytes
    this.#onMore()
  }

  remove(bytes: number): void {
    this.#bytes -= bytes
    this.#onLess()
  }

  /** Counts an answer of unknown size. @returns a function that ends this. After three seconds it ends by itself */
  answer(): () => void {
    return this.#addFor(ANSWER_MS, ANSWER_BYTES)
  }

  /** Lets everything wait for at most this time. @returns a function that ends this */
  everything(longestMs: number): () => void {
    return this.#addFor(longestMs, EVERYTHING)
  }

  /** Waits for nothing any more: the browser is gone. */
  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }

  #addFor(longestMs: number, bytes: number): () => void {
    const end = (): void => {
      if (!this.#timers.delete(timer)) return
      clearTimeout(timer)
      this.remove(bytes)
    }
    const timer = setTimeout(end, longestMs).unref()
    this.#timers.add(timer)
    this.add(bytes)
    return end
  }
}
