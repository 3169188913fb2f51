import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { symbols } from 'pino'
import { logTime } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Span, TraceIds } from '../telemetry/traces/span.ts'
import { methodLabel } from './requester.ts'

/** Internals of a pino logger: the destination of its lines, and the fields that all lines share, as JSON. */
type Log = FastifyBaseLogger & {
  isLevelEnabled(level: string): boolean
  readonly [symbols.streamSym]: { write(line: string): void }
  readonly [symbols.chindingsSym]: string
}

/** `version-trace-parent-flags` (W3C Trace Context §3.2). Future versions may append more fields. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/
/** The client closed the connection before the response began. 499 is no HTTP status, but proxies log it for this. */
const CLIENT_CLOSED = 499

/** Makes the function that counts and logs a request once it is over, however it ended. */
export function requestRecorder(
  logger: FastifyBaseLogger,
  metrics: Metrics,
): (request: FastifyRequest, reply: FastifyReply, span: Span) => void {
  const log = logger as Log
  const isLogged = log.isLevelEnabled('info')
  return (request, reply, span) => {
    const { raw } = reply
    const method = methodLabel(request.method)
    const route = request.routeOptions.url ?? 'unmatched'
    const status = raw.headersSent ? raw.statusCode : CLIENT_CLOSED
    const tookMs = reply.elapsedTime
    metrics.requests.add(route, { method, status }, tookMs / 1000)
    if (isLogged) log[symbols.streamSym].write(requestLine(log, request, { route, status, tookMs, span }))
    span.end(raw.headersSent ? { status } : { error: 'client_closed' })
  }
}

/**
 * Builds the line by hand, since every request pays for it: pino's general serializer took a tenth of the time of a
 * proxied GET. Only the client's address needs escaping, because it may come from a header unchecked.
 */
function requestLine(
  log: Log,
  request: FastifyRequest,
  { route, status, tookMs, span }: Readonly<{ route: string; status: number; tookMs: number; span: Span }>,
): string {
  const { id, method, ip, sessionTag, headers } = request
  const trace = span.ids === undefined ? traceIdOf(headers['traceparent']) : idsOf(span.ids)
  const start = `{"level":30${logTime()}${log[symbols.chindingsSym]}`
  const outcome = `"reqId":"${id}","method":"${method}","route":"${route}","status":${status}`
  const ms = Math.round(tookMs * 10) / 10
  // A client that disconnected before its request was handled has no address.
  const caller = `"session":"${sessionTag}","client":${JSON.stringify(ip ?? null)}`
  return `${start},${outcome},"ms":${ms},${caller}${trace},"msg":"request"}\n`
}

function idsOf({ trace_id: trace, span_id: span }: TraceIds): string {
  return `,"trace_id":"${trace}","span_id":"${span}"`
}

/** The trace id of a `traceparent` header, for the line of a request without a span of its own; empty if there is no valid one. */
function traceIdOf(traceparent: string | string[] | undefined): string {
  const id = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent)?.[1] : undefined
  return id === undefined ? '' : `,"trace_id":"${id}"`
}
