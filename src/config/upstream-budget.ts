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

const MAX_CALLS = 1_000_000
const MAX_SECONDS = 3600

/** Parses UPSTREAM_BUDGET, such as `300/60,1000/600`. Undefined if it is not valid. */
export function parseBudget(text: string): BudgetWindow[] | undefined {
  const windows = text.split(',').map((part) => {
    const [, calls = '', seconds = ''] = /^\s*([1-9]\d{0,6})\/([1-9]\d{0,3})\s*$/.exec(part) ?? []
    return { calls: Number(calls), windowMs: Number(seconds) * 1000 }
  })
  const isValid = windows.every(
    ({ calls, windowMs }) => calls >= 1 && calls <= MAX_CALLS && windowMs >= 1000 && windowMs <= MAX_SECONDS * 1000,
  )
  const isDistinct = new Set(windows.map(({ windowMs }) => windowMs)).size === windows.length
  return isValid && isDistinct ? windows.toSorted((one, other) => one.windowMs - other.windowMs) : undefined
}

/**
 * Returns which windows of UPSTREAM_BUDGET, counted from 1 in the order of the setting, can never be the tighter one because
 * another window never lets more calls through within their length. A sliding window of 60 s lets its calls through twice
 * within 90 s: at the beginning and at the end.
 */
export function windowsWithoutEffect(text: string): number[] {
  const windows = text.split(',').flatMap((part) => parseBudget(part) ?? [])
  return windows.flatMap((window, index) => {
    const bounds = (other: BudgetWindow): boolean =>
      other !== window && other.calls * Math.ceil(window.windowMs / other.windowMs) <= window.calls
    return windows.some(bounds) ? index + 1 : []
  })
}

/** Parses UPSTREAM_BUDGET_SHARES, such as `100,80,50`. Undefined if it is not valid. */
export function parseShares(text: string): ByClass | undefined {
  const parts = text.split(',').map((part) => (/^\s*[1-9]\d{0,2}\s*$/.test(part) ? Number(part) / 100 : NaN))
  const [orders = NaN, otps = NaN, reads = NaN, ...rest] = parts
  const isNested = orders <= 1 && otps <= orders && reads <= otps
  return isNested && rest.length === 0 ? { orders, otps, reads } : undefined
}

/** How many calls of a window one process may make while it cannot reach Redis. */
export function callsAlone({ calls }: BudgetWindow, { alone, instances }: BudgetConfig): number {
  return Math.floor(Math.floor(calls * alone) / instances)
}

/** How many calls of a window the processes with Redis have together. Without Redis, a process has all of them. */
export function callsShared({ calls }: BudgetWindow, { alone }: Pick<BudgetConfig, 'alone'>): number {
  return calls - Math.floor(calls * alone)
}
