import type { Config } from '../config.ts'
import type { Guard } from '../http/guard.ts'
import type { Metrics } from '../measure.ts'
import type { SessionCookie } from '../session/session-cookie.ts'
import type { SessionReader } from '../session/session-reader.ts'
import type { Sessions } from '../session/sessions.ts'
import type { AccessTokens } from './access-tokens.ts'
import type { AttributionCookie } from './attribution.ts'
import type { Flow, LoginTransactions } from './login-transactions.ts'
import type { Provider, RefusalCode } from './provider.ts'

/** What the routes below /auth work with. */
export interface AuthParts {
  readonly config: Config['oauth']
  readonly sessionMaxMs: number
  readonly guard: Guard
  readonly metrics: Metrics
  readonly cookie: SessionCookie
  readonly sessions: Sessions
  readonly reader: SessionReader
  readonly transactions: LoginTransactions
  readonly attributionCookie: AttributionCookie
  readonly provider: Provider
  readonly tokens: AccessTokens
}

/** Why a login did not succeed, as the frontend is told in `auth_error`. */
export type AuthError = RefusalCode | 'state_mismatch' | 'provider_unavailable' | 'try_later'

/** Where a login that failed returns to; flow and path where they are known. */
export function failureUrl(
  frontendUrl: string,
  error: AuthError,
  known?: { flow: Flow; returnTo: string },
): string {
  const query = new URLSearchParams({
    auth_error: error,
    ...(known && { flow: known.flow, return_to: known.returnTo }),
  })
  return `${frontendUrl}/?${query.toString()}`
}
