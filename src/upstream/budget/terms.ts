import { byClass, callsAlone, callsShared, type BudgetConfig, type BudgetWindow } from '../../config/upstream-budget.ts'
import { LEDGER, type LedgerTerms, type LedgerWindow } from '../../store/ledger/ledger.ts'

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

/** All that follows from the settings: what the instances agree on, and how each of them uses its part. */
export interface BudgetTerms extends LedgerTerms {
  /** The calls that one process may make while it cannot reach the ledger. */
  readonly alone: readonly LedgerWindow[]
  /** How many processes there are at most. */
  readonly instances: number
  /** For how long a process asks for tokens in advance. */
  readonly advanceMs: number
  /**
   * A process whose last news of the tokens left is older than this asks again for a subject that has had its share. That is as
   * often as the ledger wants to hear from processes under overload.
   */
  readonly refreshMs: number
  /** The tokens that each process keeps at hand for orders. */
  readonly readyOrders: number
}

/** The terms for these settings. */
export function budgetTerms(config: BudgetConfig): BudgetTerms {
  const { instances } = config
  const windows = ceilingsOf(config, (window) => callsShared(window, config))
  const shortest = windows[0]?.windowMs ?? 0
  const longest = windows.at(-1)?.windowMs ?? 0
  const leaseMs = Math.round(Math.min(MAX_LEASE_MS, Math.max(MIN_LEASE_MS, shortest * LEASE_OF_SHORTEST)))
  const leastForOrders = Math.min(...windows.map(({ ceilings }) => ceilings.orders))
  return {
    windows,
    leaseMs,
    marginMs: MARGIN_MS,
    bucketMs: Math.ceil(Math.max(shortest * BUCKET_OF_SHORTEST, longest * BUCKET_OF_LONGEST)),
    alone: ceilingsOf(config, (window) => callsAlone(window, config)),
    instances,
    advanceMs: leaseMs * ADVANCE_OF_LEASE,
    refreshMs: (shortest / LEDGER.reportsPerWindow) * instances,
    readyOrders: Math.min(MAX_READY, Math.max(1, Math.floor(leastForOrders * READY_PART))),
  }
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
