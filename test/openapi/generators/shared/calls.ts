/** What a page finds out without a session, by a client that was generated. */
export interface Stranger {
  readonly authenticated: boolean
  /** The code of the problem that a call gets. */
  readonly code: string
}

/** What it finds out with one. */
export interface User {
  readonly balances: readonly Balance[]
  /** The balance of the account that it opens, which exists already. */
  readonly opened: Balance
}

export type Balance = number | string | undefined

/** Only scripts of the page can send it. */
export const CSRF = { 'X-CSRF': '1' }
export const ACCOUNT = { account_type: 'demo', currency: 'USD', group: 'row' } as const

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** Compiles only if both types are the same: `any` is the same as no other. */
export function same<A, B>(_equal: Equal<A, B>): void {}
