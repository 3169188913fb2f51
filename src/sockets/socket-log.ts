import type { FastifyReply, FastifyRequest } from 'fastify'
import { network } from '../http/client-address.ts'
import { audit } from '../telemetry/audit.ts'
import { auditBounded } from '../telemetry/bounded-audit.ts'
import { codeLabel, type CloseStatus } from './close-codes.ts'
import type { SocketDependencies } from './socket-dependencies.ts'

/** What metrics and logs call a socket. */
export type SocketKind = 'public' | 'demo' | 'real' | 'trading' | 'session'

/** What a socket is for: its kind, and the log tag of its account where it has one. */
export interface SocketPurpose {
  readonly kind: SocketKind
  readonly account?: string
}

/** What the log says of an open socket. */
export interface SocketIdentity extends SocketPurpose {
  readonly reqId: string
  /** The log tag of its session; empty without one. */
  readonly session: string
  readonly client: string
}

type LogDependencies = Pick<SocketDependencies, 'metrics' | 'log'>

/** Counts and logs a socket that opens. Its response never finishes, so the usual request line is never written. */
export function recordOpening(
  { metrics, log }: LogDependencies,
  request: FastifyRequest,
  { elapsedTime }: FastifyReply,
  { kind, account }: SocketPurpose,
): SocketIdentity {
  const { id: reqId, ip: client, sessionTag: session } = request
  const identity = { kind, reqId, session, ...(account !== undefined && { account }), client }
  metrics.requests.add(request.routeOptions.url ?? '', { method: 'GET', status: 101 }, elapsedTime / 1000)
  audit(log, 'relay_opened', { ...identity, ms: Math.round(elapsedTime * 10) / 10 })
  return identity
}

/** Counts and logs a handshake that ends with a close frame. */
export function recordRefusal(
  { metrics }: LogDependencies,
  { log, ip: client, sessionTag: session }: FastifyRequest,
  { kind, account }: SocketPurpose,
  close: CloseStatus,
): void {
  metrics.relayCloses.inc({ code: codeLabel(close) })
  const { code, reason } = close
  const who = { session, ...(account !== undefined && { account }), client }
  auditBounded(log, 'relay_refused', { kind, code, reason, ...who }, `${reason}|${session || network(client)}`)
}
