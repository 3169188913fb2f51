import { BUDGET_CLASSES, byClass, type BudgetClass, type ByClass } from '../../config/upstream-budget.ts'
import type { Clock } from './clock.ts'

/** How fast calls of each class come, as a moving average over about the time for which tokens are asked in advance. */
export class Demand {
  readonly #clock: Clock
  readonly #horizonMs: number
  readonly #count = byClass(() => 0)
  /** Calls a millisecond. */
  readonly #rate = byClass(() => 0)
  #measuredAt: number

  constructor(clock: Clock, horizonMs: number) {
    this.#clock = clock
    this.#horizonMs = horizonMs
    this.#measuredAt = clock.now()
  }

  note(budgetClass: BudgetClass): void {
    this.#count[budgetClass]++
  }

  /** The part of all calls that are of other classes; 1 as long as there are none. */
  partOtherThan(budgetClass: BudgetClass): number {
    const { orders, otps, reads } = this.#rate
    const all = orders + otps + reads
    return all === 0 ? 1 : 1 - this.#rate[budgetClass] / all
  }

  /** The calls of each class that the next horizon probably brings. */
  expected(): ByClass {
    const now = this.#clock.now()
    const passedMs = now - this.#measuredAt
    // A rate over a moment says nothing.
    if (passedMs >= this.#horizonMs / 10) {
      for (const each of BUDGET_CLASSES) {
        const change = this.#count[each] / passedMs - this.#rate[each]
        // A rise is believed sooner than a fall: tokens that turn out to be too many go back with the next report.
        const memoryMs = change > 0 ? this.#horizonMs / 4 : this.#horizonMs
        this.#rate[each] += (1 - Math.exp(-passedMs / memoryMs)) * change
        this.#count[each] = 0
      }
      this.#measuredAt = now
    }
    return byClass((each) => Math.ceil(this.#rate[each] * this.#horizonMs))
  }
}
