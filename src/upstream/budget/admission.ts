import type { BudgetClass } from '../../config/upstream-budget.ts'

/** A token that is reserved for one request. */
export interface Reservation {
  /**
   * Spends the token. Called when a connection is about to write the request, and again if undici writes it once more.
   * Returns why the request must not be written, if there is no token any more or upstream limits its user meanwhile.
   */
  start(): Refused | undefined
  /** Upstream answered. A 429 has consequences on all instances. */
  answered(status: number, retryAfter: string | string[] | undefined): void
  /** The request is over. A token that was not spent is free again. More calls have no effect. */
  end(): void
}

/** Nothing may be sent before this time has passed. */
export interface Refused {
  readonly is: 'refused'
  /** Whether the calls of all users together have reached a limit, or upstream limits the calls of this user. */
  readonly limited: 'user' | 'all'
  readonly retryAfterMs: number
}

/** Whether a request may be sent. */
export type Admission = { readonly is: 'granted'; readonly reservation: Reservation } | Refused

/** The budget of calls that all instances share (UPSTREAM_BUDGET). */
export interface Budget {
  /**
   * Asks for one attempt of a request. Synchronous while this instance has tokens at hand. Never rejects.
   * @param user whose request it is, so that one user cannot take the tokens of all: the subject, else the session
   * @param source the name by which the user counts if upstream refuses the request: the subject, else the address. Without
   * it, as without a session, a refusal counts for no user
   */
  admit(budgetClass: BudgetClass, user: string, source?: () => string): Admission | Promise<Admission>
  /** The time (ms) over which all instances together must spread this many one-time URLs, so that the budget has room for them. */
  spread(count: number): number
}

/** The outcome of a request that the budget refused: nothing was sent. */
export interface OverBudget extends Omit<Refused, 'is'> {
  readonly is: 'overBudget'
}
