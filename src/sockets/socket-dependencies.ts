import type { FastifyBaseLogger } from 'fastify'
import type { Sessions } from '../sessions/index.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Caps } from '../limits/caps.ts'
import type { SocketRegistry } from './registry.ts'
import type { Returns } from './returns.ts'

/** What the sockets of every kind work with. */
export interface SocketDependencies {
  readonly sessions: Sessions
  readonly metrics: Metrics
  readonly log: FastifyBaseLogger
  readonly caps: Caps
  readonly registry: SocketRegistry
  /** Absent without UPSTREAM_BUDGET. */
  readonly returns: Returns | undefined
}
