import type { BudgetClass } from '../../config/upstream-budget.ts'

/** A token that is reserved for one request. */
export interface Reservation {
  /**
   * Spends the token. Called when a connection is about to write the request, and again if undici writes it once more.
   * Returns for how long to wait (ms) if there is no token any more and the request must not be written.
   */
  start(): number | undefined
  /** Upstream answered. Its 429 holds the class back on all instances. */
  answered(status: number, retryAfter: string | string[] | undefined): void
  /** The request is over. A token that was not spent is free again. More calls have no effect. */
  end(): void
}

/** Whether a request may be sent. */
export type Admission =
  | { readonly is: 'granted'; readonly reservation: Reservation }
  /** Nothing may be sent before this time has passed. */
  | { readonly is: 'refused'; readonly retryAfterMs: number }

/** The budget of calls that all instances share (UPSTREAM_BUDGET). */
export interface Budget {
  /**
   * Asks for one attempt of a request. Synchronous while this instance has tokens at hand. Never rejects.
   * @param subject whose request it is, so that one user cannot take everybody's tokens
   */
  admit(budgetClass: BudgetClass, subject: string): Admission | Promise<Admission>
  /** The time (ms) over which all instances together must spread this many one-time URLs, so that the budget has room for them. */
  spread(count: number): number
}

/** The outcome of a request that the budget refused: nothing was sent. */
export interface OverBudget {
  readonly is: 'overBudget'
  readonly retryAfterMs: number
}
