/** A number of calls that upstream allows within any window of this length. */
export interface BudgetWindow {
  readonly calls: number
  readonly windowMs: number
}

/**
 * The classes of calls to the upstream REST API, from the most important to the least. `otps` are calls that open something
 * for a user: one-time URLs, and whatever a login asks of upstream.
 */
export const BUDGET_CLASSES = ['orders', 'otps', 'reads'] as const
/** One of {@link BUDGET_CLASSES}. */
export type BudgetClass = (typeof BUDGET_CLASSES)[number]

/** Calls, or milliseconds, by class. */
export type ByClass = Readonly<Record<BudgetClass, number>>

/** Makes a value for each class. */
export function byClass<Value>(make: (budgetClass: BudgetClass) => Value): Record<BudgetClass, Value> {
  return { orders: make('orders'), otps: make('otps'), reads: make('reads') }
}

/** The settings of the upstream budget, parsed. */
export interface BudgetConfig {
  readonly name: string
  /** Shortest first. */
  readonly windows: readonly BudgetWindow[]
  /** The part of the budget up to which the calls of a class are admitted, from 0 to 1. */
  readonly shares: ByClass
  /** The part that is set aside for processes without Redis, from 0 to 1. */
  readonly alone: number
  /** How many processes share the part set aside. */
  readonly instances: number
}

/** How many calls of a window one process may make while it cannot reach Redis. */
export function callsAlone({ calls }: BudgetWindow, { alone, instances }: BudgetConfig): number {
  return Math.floor(Math.floor(calls * alone) / instances)
}

/** How many calls of a window the processes with Redis have together. Without Redis, a process has all of them. */
export function callsShared({ calls }: BudgetWindow, { alone }: Pick<BudgetConfig, 'alone'>): number {
  return calls - Math.floor(calls * alone)
}
