import { callsAlone, callsShared, type BudgetConfig, type BudgetWindow } from '../../config/upstream-budget.ts'
import type { LedgerTerms, LedgerWindow } from '../../store/ledger/ledger.ts'

/** How long a process may spend the tokens that it holds without hearing from the ledger. */
const LEASE_MS = 7000
/** A call reaches upstream this much later than its token was spent at most, and the ledger's clock may be ahead by the rest. */
const MARGIN_MS = 1250
/** The ledger rounds times to this part of the shortest window, or to that of the longest if it is more. */
const BUCKET_OF_SHORTEST = 1 / 120
const BUCKET_OF_LONGEST = 1 / 2400
/** Tokens that are always at hand for orders: a part of their ceiling, up to a few. */
const READY_PART = 1 / 25
const MAX_READY = 4

/** The terms of the ledger for these settings. */
export function ledgerTerms(config: BudgetConfig): LedgerTerms {
  const { windows } = config
  const shortest = windows[0]?.windowMs ?? 0
  const longest = windows.at(-1)?.windowMs ?? 0
  return {
    windows: ceilingsOf(config, (window) => callsShared(window, config)),
    leaseMs: LEASE_MS,
    marginMs: MARGIN_MS,
    bucketMs: Math.ceil(Math.max(shortest * BUCKET_OF_SHORTEST, longest * BUCKET_OF_LONGEST)),
  }
}

/** The tokens that each process keeps at hand for orders. */
export function readyOrders({ windows }: LedgerTerms): number {
  const ceiling = Math.min(...windows.map(({ ceilings }) => ceilings.orders))
  return Math.min(MAX_READY, Math.max(1, Math.floor(ceiling * READY_PART)))
}

/** What one process may spend while it cannot reach the ledger. */
export function aloneWindows(config: BudgetConfig): LedgerWindow[] {
  return ceilingsOf(config, (window) => callsAlone(window, config))
}

function ceilingsOf({ windows, shares }: BudgetConfig, callsOf: (window: BudgetWindow) => number): LedgerWindow[] {
  return windows.map((window) => {
    const calls = callsOf(window)
    const ceiling = (share: number): number => Math.floor(calls * share)
    const ceilings = { orders: ceiling(shares.orders), otps: ceiling(shares.otps), reads: ceiling(shares.reads) }
    return { windowMs: window.windowMs, ceilings }
  })
}
