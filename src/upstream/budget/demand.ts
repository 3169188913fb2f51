import { BUDGET_CLASSES, byClass, type BudgetClass, type ByClass } from '../../config/upstream-budget.ts'
import type { Clock } from './clock.ts'
import type { Wanted } from './leaseholder.ts'
import type { Shares } from './shares.ts'
import type { BudgetTerms } from './terms.ts'
import type { WaitingLine } from './waiting-line.ts'

/** How fast calls of each class come, as a moving average over about the time for which tokens are asked in advance. */
class Rates {
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

/** How fast calls come: those within equal parts, and those beyond them that are allowed. No other call is a reason to ask for tokens. */
export class Demand {
  readonly #rates: Readonly<Record<'equal' | 'more', Rates>>
  readonly #readyOrders: number

  constructor(clock: Clock, { advanceMs, readyOrders }: BudgetTerms) {
    this.#rates = { equal: new Rates(clock, advanceMs), more: new Rates(clock, advanceMs) }
    this.#readyOrders = readyOrders
  }

  note(budgetClass: BudgetClass, portion: 'equal' | 'more'): void {
    this.#rates[portion].note(budgetClass)
  }

  /** The part of all calls within equal parts that are of other classes; 1 as long as there are none. */
  partOtherThan(budgetClass: BudgetClass): number {
    return this.#rates.equal.partOtherThan(budgetClass)
  }

  /**
   * The request of a report to the ledger: tokens for calls that are expected, and for calls that wait, as far as they may have
   * some. So a user with many calls takes no more from other processes than from the others of its own. A few tokens are always
   * at hand for orders besides, so that they last until the next report.
   */
  wanted(lines: Readonly<Record<BudgetClass, WaitingLine>>, shares: Shares): Wanted {
    const [equal, more] = [this.#rates.equal.expected(), this.#rates.more.expected()]
    const most = byClass(() => 0)
    const target = byClass(() => 0)
    for (const each of BUDGET_CLASSES) {
      const line = lines[each]
      const waiting = line.count((subject) => shares.equalLeft(each, subject))
      const beyond = line.length - waiting
      const extra = beyond + more[each] === 0 ? 0 : Math.min(beyond + more[each], shares.moreLeft(each))
      const always = equal[each] + (each === 'orders' ? this.#readyOrders : 0)
      most[each] = always + more[each]
      // At least one: a subject that may have another call in one window and none in the other would wait for ever.
      target[each] = waiting + always + Math.max(Math.min(1, beyond), extra)
    }
    return { most, target }
  }
}
