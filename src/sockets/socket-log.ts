import type { FastifyReply, FastifyRequest } from 'fastify'
import { callerOnAccount, sourceOf } from '../http/requester.ts'
import { audit, auditBounded } from '../telemetry/audit/audit.ts'
import { activeSpan } from '../telemetry/traces/span.ts'
import { codeLabel, type CloseStatus } from './close-codes.ts'
import type { SocketDependencies } from './socket-dependencies.ts'

/** What metrics and logs call a socket. */
export type SocketKind = 'public' | 'demo' | 'real' | 'trading' | 'session'

/** The kind under which the end of a socket is counted. A refusal may come before it is known which kind an account is of. */
export function endedKind(kind: SocketKind): 'public' | 'trading' | 'session' {
  return kind === 'demo' || kind === 'real' ? 'trading' : kind
}

/** What the log says of an open socket. */
export interface SocketIdentity {
  readonly kind: SocketKind
  readonly reqId: string
  /** The log tag of its session; empty without one. */
  readonly session: string
  /** The log tag of its subject, where that is known. */
  readonly subject: string | undefined
  readonly client: string
  /** The log tag of its account, where it has one. */
  readonly account: string | undefined
  readonly trace_id?: string
  readonly span_id?: string
}

type LogDependencies = Pick<SocketDependencies, 'metrics' | 'log'>

/** Counts and logs a socket that opens. Its response never finishes, so the usual request line is never written. */
export function recordOpening(
  { metrics, log }: LogDependencies,
  request: FastifyRequest,
  { elapsedTime }: FastifyReply,
  kind: SocketKind,
): SocketIdentity {
  const { ids } = activeSpan()
  const identity = { kind, reqId: request.id, ...callerOnAccount(request), ...ids }
  metrics.requests.add(request.routeOptions.url ?? '', { method: 'GET', status: 101 }, elapsedTime / 1000)
  audit(log, 'relay_opened', { ...identity, ms: Math.round(elapsedTime * 10) / 10 })
  return identity
}

/** Counts and logs a handshake that ends with a close frame. */
export function recordRefusal(
  { metrics }: LogDependencies,
  request: FastifyRequest,
  kind: SocketKind,
  close: CloseStatus,
): void {
  metrics.relayCloses.inc({ kind: endedKind(kind), code: codeLabel(close) })
  const { code, reason } = close
  const fields = { kind, code, reason, ...callerOnAccount(request) }
  auditBounded(request.log, 'relay_refused', fields, `${reason}|${sourceOf(request)}`)
}
