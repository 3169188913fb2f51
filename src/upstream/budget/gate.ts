import type { Clock } from './clock.ts'
import type { Token } from './lease.ts'
import { WaitingLine } from './waiting-line.ts'

/** The calls of one class that wait, and until when the ledger has no tokens for them. Times are those of the monotonic clock. */
export class Gate {
  readonly line = new WaitingLine<Token>()
  readonly #clock: Clock
  #emptyUntil = -Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The ledger has no tokens for the class until then. */
  get emptyUntil(): number {
    return this.#emptyUntil
  }

  get isEmpty(): boolean {
    return this.#emptyUntil > this.#clock.now()
  }

  /** For how much longer there is nothing to be had (ms); 0 or less when there may be something. */
  get waitMs(): number {
    return this.#emptyUntil - this.#clock.now()
  }

  /** The ledger has replied. @param waitMs for how long it has no more tokens; 0 if it granted all that were asked for */
  noteReply(waitMs: number): void {
    this.#emptyUntil = waitMs > 0 ? this.#clock.now() + waitMs : -Infinity
  }

  /** Refuses all calls that wait. */
  dismiss(): void {
    this.line.dismiss()
  }
}
