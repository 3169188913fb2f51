import type { BudgetClass } from '../../config/upstream-budget.ts'

/** What a budget counts, for the metrics. */
interface BudgetCounts {
  readonly granted: Record<BudgetClass, number>
  readonly refused: Record<BudgetClass, number>
  /** Calls refused because upstream limits their user. */
  readonly limited: Record<BudgetClass, number>
  /** Calls granted without Redis. */
  alone: number
}

/** Counts that begin at 0. */
export function newCounts(): BudgetCounts {
  return { granted: zero(), refused: zero(), limited: zero(), alone: 0 }
}

function zero(): Record<BudgetClass, number> {
  return { orders: 0, otps: 0, reads: 0 }
}
