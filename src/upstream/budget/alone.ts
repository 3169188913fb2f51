import type { BudgetClass } from '../../config/upstream-budget.ts'
import type { LedgerWindow } from '../../store/ledger/ledger.ts'
import type { Clock } from './clock.ts'
import type { Token } from './lease.ts'

/**
 * The part of the budget that is set aside for a process without Redis. A new process has to wait for a whole window, since
 * the one that it replaces may have spent the part just before it died.
 */
export class AlonePart {
  readonly #clock: Clock
  readonly #windows: readonly LedgerWindow[]
  readonly #marginMs: number
  readonly #startedAt: number
  /** When tokens were spent, the oldest first. */
  readonly #spentAt: number[] = []
  /** Taken, but not spent yet. */
  #taken = 0

  constructor(clock: Clock, windows: readonly LedgerWindow[], marginMs: number) {
    this.#clock = clock
    this.#windows = windows
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
        this.#spentAt.push(this.#clock.now())
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
    while ((this.#spentAt[0] ?? Infinity) <= now - longest - this.#marginMs) this.#spentAt.shift()
    const spent = this.#spentAt.filter((at) => at > since).length
    return ceilings[budgetClass] - spent - this.#taken
  }
}
