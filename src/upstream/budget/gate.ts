import type { Clock } from './clock.ts'
import { FairShare } from './fair-share.ts'
import type { Token } from './lease.ts'
import { WaitingLine } from './waiting-line.ts'

/** What keeps the calls of one class waiting. Times are those of the monotonic clock. */
export class Gate {
  readonly line = new WaitingLine<Token>()
  readonly share: FairShare
  readonly #clock: Clock
  /** The ledger has no tokens for the class until then. */
  emptyUntil = -Infinity
  /** Upstream refuses the class until then. */
  heldBackUntil = -Infinity

  /** @param memoryMs see {@link FairShare} */
  constructor(clock: Clock, memoryMs: number) {
    this.#clock = clock
    this.share = new FairShare(clock, memoryMs)
  }

  get isEmpty(): boolean {
    return this.emptyUntil > this.#clock.now()
  }

  get isHeldBack(): boolean {
    return this.heldBackUntil > this.#clock.now()
  }

  /** For how much longer there is nothing to be had (ms); 0 or less when there may be something. */
  get waitMs(): number {
    return Math.max(this.emptyUntil, this.heldBackUntil) - this.#clock.now()
  }
}
