import { byClass, callsAlone, callsShared, type BudgetConfig, type BudgetWindow } from '../../config/upstream-budget.ts'
import { REPORTS_PER_WINDOW, type LedgerTerms, type LedgerWindow } from '../../store/ledger/ledger.ts'

/**
 * How long a process may spend the tokens that it holds without hearing from the ledger: this part of the shortest window,
 * within limits. The longer it is, the fewer reports there are, but the longer a ledger that has lost its memory is quiet.
 */
const LEASE_OF_SHORTEST = 1 / 4
const MIN_LEASE_MS = 5000
const MAX_LEASE_MS = 15_000
/** The part of a lease for which a process asks for tokens in advance. Tokens that wait to be spent are lost for others. */
const ADVANCE_OF_LEASE = 0.4
/** A call reaches upstream at most this much later than its token was spent, and the ledger's clock may be ahead by the rest. */
const MARGIN_MS = 1250
/** The ledger rounds times to this part of the shortest window, or to that of the longest if it is more. */
const BUCKET_OF_SHORTEST = 1 / 240
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
    leaseMs: Math.round(Math.min(MAX_LEASE_MS, Math.max(MIN_LEASE_MS, shortest * LEASE_OF_SHORTEST))),
    marginMs: MARGIN_MS,
    bucketMs: Math.ceil(Math.max(shortest * BUCKET_OF_SHORTEST, longest * BUCKET_OF_LONGEST)),
  }
}

/** For how long a process asks for tokens in advance. */
export function advanceMs({ leaseMs }: LedgerTerms): number {
  return leaseMs * ADVANCE_OF_LEASE
}

/**
 * A process whose last news of the tokens left is older than this asks again for a subject that has had its share. That is as
 * often as the ledger wants to hear from processes under overload.
 */
export function refreshMs({ windows }: LedgerTerms, instances: number): number {
  return ((windows[0]?.windowMs ?? 0) / REPORTS_PER_WINDOW) * instances
}

/** The tokens that each process keeps at hand for orders. */
export function readyOrders({ windows }: LedgerTerms): number {
  const ceiling = Math.min(...windows.map(({ ceilings }) => ceilings.orders))
  return Math.min(MAX_READY, Math.max(1, Math.floor(ceiling * READY_PART)))
}

/** The calls that one process may make while it cannot reach the ledger. */
export function aloneWindows(config: BudgetConfig): LedgerWindow[] {
  return ceilingsOf(config, (window) => callsAlone(window, config))
}

/**
 * The time (ms) over which this many one-time URLs have to be spread, so that each window has room for them beside the other
 * classes, and at least for a quarter of their ceiling. Within the shortest window they are spread evenly. 0 for one.
 * @param windows shortest first
 * @param others for each window the calls of other classes that count now
 */
export function spreadMs(count: number, windows: readonly LedgerWindow[], others: readonly number[]): number {
  let left = count
  let totalMs = 0
  for (const [at, { ceilings, windowMs }] of [...windows.entries()].toReversed()) {
    if (left <= 1) break
    const room = Math.max(1, Math.floor(Math.max(ceilings.otps - (others[at] ?? 0), ceilings.otps / 4)))
    const full = Math.floor((left - 1) / room)
    totalMs += full * windowMs
    left -= full * room
    if (at === 0) totalMs += ((left - 1) / room) * windowMs
  }
  return totalMs
}

function ceilingsOf({ windows, shares }: BudgetConfig, callsOf: (window: BudgetWindow) => number): LedgerWindow[] {
  return windows.map((window) => {
    const calls = callsOf(window)
    return { windowMs: window.windowMs, ceilings: byClass((each) => Math.floor(calls * shares[each])) }
  })
}
