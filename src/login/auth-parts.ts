import type { Config } from '../config/config.ts'
import type { Guard } from '../http/guard.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { SessionCookie } from '../sessions/session-cookie.ts'
import type { SessionReader } from '../sessions/session-reader.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { AccessTokens } from '../sessions/access-tokens.ts'
import type { AttributionCookie } from './attribution-cookie.ts'
import type { LoginTransactions } from './login-transactions.ts'
import type { Provider } from '../oauth/provider.ts'
import type { StartLimit } from './start-limit.ts'

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
  readonly startLimit: StartLimit
  readonly attributionCookie: AttributionCookie
  readonly provider: Provider
  readonly tokens: AccessTokens
}
