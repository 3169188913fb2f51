import type { LedgerBook } from './ledger-book.ts'
import type { Ledger, LedgerReply, LedgerReport, LedgerTerms } from './ledger.ts'

/** The ledger of one process that has no Redis. It begins anew with the process, so it does not know its predecessor's calls. */
export class MemoryLedger implements Ledger {
  readonly #book: LedgerBook
  readonly #terms: LedgerTerms

  constructor(book: LedgerBook, terms: LedgerTerms) {
    this.#book = book
    this.#terms = terms
  }

  async settle(report: LedgerReport): Promise<LedgerReply> {
    return this.#book.settle(this.#terms, report, { timeOfDay: now(), run: '', quietMs: 0 })
  }
}

/** A clock that nobody sets. */
function now(): number {
  return Math.floor(performance.timeOrigin + performance.now())
}
