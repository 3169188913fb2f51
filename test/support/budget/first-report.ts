import type { LedgerReport } from '../../../src/store/ledger/ledger.ts'

export const NO_TOKENS = { orders: 0, otps: 0, reads: 0 }

/** The first report of a holder that has spent and holds nothing. */
export const FIRST_REPORT: LedgerReport = {
  ...{ holder: 'one', sequence: 1, ledger: '', heardAt: 0, sinceMs: 0 },
  ...{ spent: 0, spends: [], isWhole: true, held: NO_TOKENS, lapsed: 0, wanted: NO_TOKENS },
}
