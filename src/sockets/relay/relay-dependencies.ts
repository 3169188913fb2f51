import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../../config/config.ts'
import type { Guard } from '../../http/guard.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Sessions } from '../../sessions/index.ts'
import type { RestClient } from '../../upstream/rest-client.ts'
import type { RelayLimits } from './relay.ts'

/** What the routes below /ws work with. */
export interface RelayDependencies {
  readonly config: Config['relay'] & Pick<RelayLimits, 'heartbeatMs'>
  readonly upstream: Config['upstream']
  readonly drainMs: number
  readonly guard: Guard
  readonly metrics: Metrics
  readonly sessions: Sessions
  readonly rest: RestClient
  readonly log: FastifyBaseLogger
  /** What the log calls an account: it leads back to the account only with the secret. */
  readonly accountTag: (accountId: string) => string
}
