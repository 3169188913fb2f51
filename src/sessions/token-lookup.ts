import type { Session } from './session.ts'

/** When a caller that has waited in vain should try again. */
export const RETRY_MS = 1000

/** A session whose access token can be used, or why there is none. */
export type TokenLookup =
  | { readonly is: 'good'; readonly session: Session }
  | { readonly is: 'ended' }
  /** The caller may try again after `retryAfterMs`. */
  | { readonly is: 'providerDown'; readonly cause: unknown; readonly retryAfterMs: number }
  /** Upstream has refused the token, and an earlier one so recently that the token is not renewed before `retryAfterMs`. */
  | { readonly is: 'justRenewed'; readonly retryAfterMs: number }

/** The client of a request. A request is one: its address, which may take a while to find, is only read where it is needed. */
export interface Client {
  readonly ip: string
}

/** What a renewal is for. */
export interface RenewalCause {
  /** Whose request needs the token; absent where that is not known. */
  readonly client?: Client | undefined
  /** Upstream has refused the token. */
  readonly isAfterRefusal?: boolean
}
