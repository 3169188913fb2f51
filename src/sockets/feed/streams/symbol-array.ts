import type { Hold, Subscription } from './subscription.ts'

/** How long the symbols that have a price wait for those that have none: some are silent for days. */
const COMPLETE_MS = 1000

/**
 * A request for the ticks of several symbols. Each symbol is a subscription of its own, and their first prices are sent together:
 * if upstream refuses one of them, the browser gets that error and nothing else, as if upstream had been asked for the array.
 */
export class SymbolArray implements Hold {
  readonly #parts: Subscription[] = []
  readonly #answer: (error: Buffer) => void
  readonly #size: number
  #arrived = 0
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  /** @param size how many symbols there will be @param answer sends an error */
  constructor(size: number, answer: (error: Buffer) => void) {
    this.#size = size
    this.#answer = answer
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Adds the subscription to a symbol. */
  add(part: Subscription): void {
    this.#parts.push(part)
  }

  arrived(): void {
    if (this.#isOver) return
    if (++this.#arrived >= this.#size) return this.#start()
    this.#timer ??= setTimeout(() => this.#start(), COMPLETE_MS).unref()
  }

  refused(error: Buffer): void {
    if (this.#isOver) return
    this.#answer(error)
    this.cancel()
  }

  /** Ends all subscriptions. */
  cancel(): void {
    this.#end()
    for (const part of this.#parts) part.failed()
  }

  #start(): void {
    this.#end()
    for (const part of this.#parts) {
      if (!part.isAttached) continue
      part.stream.serve?.(part)
      // The request has been answered, although this symbol may be silent.
      if (!part.isServed) part.served()
    }
  }

  #end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }
}
