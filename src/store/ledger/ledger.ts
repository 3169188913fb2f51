import type { ByClass } from '../../config/upstream-budget.ts'

/** What all instances agree on. Instances with other settings may share a ledger during a roll: each keeps to its own. */
export interface LedgerTerms {
  readonly windows: readonly LedgerWindow[]
  /** How long a holder may spend its tokens after it began to ask for them. */
  readonly leaseMs: number
  /** A call may reach upstream this much later than its token was spent, and clocks may disagree by as much. */
  readonly marginMs: number
  /** The ledger rounds times up to a multiple of this. */
  readonly bucketMs: number
}

/** A window, and for each class the calls of all classes together up to which it is admitted. */
export interface LedgerWindow {
  readonly windowMs: number
  readonly ceilings: ByClass
}

/** What a holder of tokens reports, and what it wants. */
export interface LedgerReport {
  readonly holder: string
  /** Grows with every report, so that one that arrives late does no harm. */
  readonly sequence: number
  /** The ledger that replied last; empty before the first reply. */
  readonly ledger: string
  /** The ledger's time in that reply (ms), and how long ago the report that it replied to was sent, on the monotonic clock. */
  readonly heardAt: number
  readonly sinceMs: number
  /** All tokens that this holder has ever spent. Those of a lease that ended are among them. */
  readonly spent: number
  /** How long ago at least tokens were spent (ms), and how many, the oldest first: those since the last reply, unless `isWhole`. */
  readonly spends: readonly Spends[]
  /** Whether `spends` are all those within the longest window. Needed where the ledger has missed some. */
  readonly isWhole: boolean
  /** Tokens that the holder keeps. All others that it has not spent are free again. */
  readonly held: ByClass
  /**
   * Tokens of a lease that has ended a short time ago, on which nothing was sent. A ledger that is quiet gives them back
   * for orders: its predecessor counts them as spent, so no other process has got them.
   */
  readonly lapsed: number
  /** Tokens that it asks for in addition. */
  readonly wanted: ByClass
}

/** Tokens that were spent at about the same time. */
export type Spends = readonly [agoMs: number, count: number]

/** What the ledger replies. */
export type LedgerReply =
  | {
      readonly is: 'settled'
      readonly ledger: string
      /** The ledger's time (ms). */
      readonly at: number
      readonly granted: ByClass
      /** For each class that got less than it wanted: for how long asking again is of no use (ms). */
      readonly waitMs: ByClass
      /** For how much longer the ledger grants nothing, because it may have forgotten something (ms). */
      readonly quietMs: number
      /** For each window the tokens that count at present. */
      readonly used: readonly number[]
    }
  /** The ledger has missed spends: it has lost its memory or the last reports, or the holder is new. Report again with all. */
  | { readonly is: 'unknown' }
  /** A newer report of the same holder has already arrived. */
  | { readonly is: 'outdated' }

/**
 * The ledger of an upstream budget: which calls all instances together have made, or still may make with the tokens that
 * they hold. Its promise: within any window, no more tokens than the ceiling of the highest class can reach upstream.
 *
 * Each token counts from its grant until a whole window after it was spent, as its holder reports, or else after the end of
 * its lease. (The proof is in docs/decisions/0011-upstream-budget.md.)
 */
export interface Ledger {
  /** @throws StoreUnavailable */
  settle(report: LedgerReport): Promise<LedgerReply>
}

/** What every ledger does alike, and its holders know. */
export const LEDGER = {
  /** A lease lasts this much longer for the ledger than for its holder, whose clock may run a little slower. */
  leaseSkewMs: 250,
  /** The clock of one server may be ahead of what a holder knows by this much, since a report takes its time too. */
  clockSkewMs: 250,
  /** An unused ledger is forgotten after this time. */
  ttlMs: 24 * 3_600_000,
  /** Under overload, a report brings about this many tokens, unless waiting for them takes longer than a lease. */
  tokensPerReport: 4,
  /** Under overload, all holders together report about this many times in the shortest window at most, if a lease permits. */
  reportsPerWindow: 60,
  /**
   * A holder reports when this part of its lease has passed at the latest. The rest is for a report that gets lost, a pause of
   * the process, and Redis while it fails over: a lease that ends meanwhile takes the tokens for orders with it.
   */
  renewPart: 2 / 3,
} as const
