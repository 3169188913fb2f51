import type { BudgetClass } from '../../config/upstream-budget.ts'
import type { LedgerWindow } from '../../store/ledger/ledger.ts'
import { SlidingCount } from '../../time/sliding-count.ts'
import type { Clock } from './clock.ts'
import type { Token } from './lease.ts'
import type { BudgetTerms } from './terms.ts'

/**
 * The part of the budget that is set aside for a process without Redis. A new process has to wait for a whole window, since
 * the one that it replaces may have spent the part just before it died.
 */
export class AlonePart {
  readonly #clock: Clock
  readonly #windows: readonly LedgerWindow[]
  readonly #marginMs: number
  readonly #startedAt: number
  readonly #spent = new SlidingCount(0)
  /** Taken, but not spent yet. */
  #taken = 0

  constructor(clock: Clock, { alone, marginMs }: BudgetTerms) {
    this.#clock = clock
    this.#windows = alone
    this.#marginMs = marginMs
    this.#startedAt = clock.now()
  }

  /** The tokens that a call of this class may take. */
  free(budgetClass: BudgetClass): number {
    return Math.max(0, Math.min(...this.#windows.map((window) => this.#freeIn(window, budgetClass))))
  }

  /** Takes a token for a call of this class. */
  take(budgetClass: BudgetClass): Token | undefined {
    if (this.free(budgetClass) === 0) return undefined
    this.#taken++
    return {
      isAlone: true,
      spend: () => {
        this.#taken--
        this.#spent.add(this.#clock.now())
        return true
      },
      release: () => void this.#taken--,
    }
  }

  #freeIn({ windowMs, ceilings }: LedgerWindow, budgetClass: BudgetClass): number {
    const now = this.#clock.now()
    const since = now - windowMs - this.#marginMs
    if (since < this.#startedAt) return 0
    const longest = this.#windows.at(-1)?.windowMs ?? 0
    this.#spent.forget(now - longest - this.#marginMs)
    return ceilings[budgetClass] - this.#spent.since(since) - this.#taken
  }
}
