import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Controls } from '../controls/controls.ts'
import type { Envelope, Session, Sessions } from '../sessions/index.ts'
import type { Store } from '../store/store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { RestClients } from '../upstream/rest-clients.ts'
import type { Endpoint } from './endpoint.ts'

/** One checked call of a browser. */
export interface Call {
  readonly endpoint: Endpoint
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** The upstream path with its query, built from the catalog. */
  readonly path: string
  /** Absent where the endpoint needs none. */
  readonly session: Session | undefined
  /** The Idempotency-Key, where there is one. */
  readonly idempotencyKey: string | undefined
}

/** The parts of the server that every call uses. */
export interface CallDependencies {
  readonly http: Config['http']
  readonly upstream: Config['upstream']
  readonly metrics: Metrics
  readonly sessions: Sessions
  readonly clients: RestClients
  readonly store: Store
  readonly envelope: Envelope
  /** Absent where operators have no token. */
  readonly controls: Controls | undefined
}
