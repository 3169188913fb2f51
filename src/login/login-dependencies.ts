import type { Config } from '../config/config.ts'
import type { Guard } from '../http/guard.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Sessions } from '../sessions/index.ts'
import type { AttributionCookie } from './attribution-cookie.ts'
import type { LoginTransactions } from './login-transactions.ts'
import type { Provider } from '../oauth/provider.ts'
import type { StartLimit } from './start-limit.ts'

/** Dependencies of the routes below /auth. */
export interface LoginDependencies {
  readonly config: Config['oauth']
  readonly sessionMaxMs: number
  readonly guard: Guard
  readonly metrics: Metrics
  readonly sessions: Sessions
  readonly transactions: LoginTransactions
  readonly startLimit: StartLimit
  readonly attributionCookie: AttributionCookie
  readonly provider: Provider
}
