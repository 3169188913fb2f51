import type { Clock } from './clock.ts'
import { FairShare } from './fair-share.ts'
import type { Token } from './lease.ts'
import { WaitingLine } from './waiting-line.ts'

/** What keeps the calls of one class waiting. Times are those of the monotonic clock. */
export class Gate {
  readonly line = new WaitingLine<Token>()
  readonly share: FairShare
  readonly #clock: Clock
  #emptyUntil = -Infinity

  /** @param memoryMs see {@link FairShare} */
  constructor(clock: Clock, memoryMs: number) {
    this.#clock = clock
    this.share = new FairShare(clock, memoryMs)
  }

  /** The ledger has no tokens for the class until then. */
  get emptyUntil(): number {
    return this.#emptyUntil
  }

  get isEmpty(): boolean {
    return this.#emptyUntil > this.#clock.now()
  }

  /** The ledger granted less than it was asked for when it replied last. It may have more by now. */
  get isScarce(): boolean {
    return this.#emptyUntil !== -Infinity
  }

  /** For how much longer there is nothing to be had (ms); 0 or less when there may be something. */
  get waitMs(): number {
    return this.#emptyUntil - this.#clock.now()
  }

  /**
   * Serves those who wait for as long as `take` has something: first those within their fair share, then the others, unless the
   * ledger has no more. Then what is left is kept for those who went short and come again: they need not come at this moment.
   */
  serve(take: (subject: string) => Token | undefined): void {
    this.line.serve((subject) => (this.share.allows(subject) ? take(subject) : undefined))
    if (!this.isEmpty) this.line.serve(take)
  }

  /** The ledger has replied. @param waitMs for how long it has no more tokens; 0 if it granted all that were asked for */
  noteReply(waitMs: number): void {
    this.#emptyUntil = waitMs > 0 ? this.#clock.now() + waitMs : -Infinity
  }

  /** Sends everybody away who waits. */
  dismiss(): void {
    this.line.dismiss()
  }
}
