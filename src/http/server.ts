import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import type { Config } from '../config.ts'
import type { Metrics } from '../measure.ts'
import { Problem } from '../problem.ts'
import { StoreUnavailable } from '../store/store.ts'
import { isPathOf } from './known-paths.ts'
import { sendProblem } from './send-problem.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Short keyed hash of the session in use, for the log; empty without one. */
    sessionTag: string
  }
}

/** A query string as it came; who needs values parses it, so that a repeated parameter is seen as one. */
export interface RawQuery {
  readonly text: string
}

/** The request must be complete within this time: a slow sender holds a connection no longer. */
const REQUEST_TIMEOUT_MS = 60_000
const KEEP_ALIVE_MS = 72_000

/** A Fastify instance with everything that holds for every route: limits, headers, errors, one log line a request. */
export function createServer(
  config: Config['http'],
  logger: FastifyBaseLogger,
  metrics: Metrics,
): FastifyInstance {
  const server = Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: config.trustProxy,
    bodyLimit: config.maxBodyBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // Only relays are upgraded: anywhere else the header means nothing, and the request is an ordinary one.
    http: { shouldUpgradeCallback: ({ url = '' }) => isPathOf(url, '/ws') },
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    routerOptions: { querystringParser: (text) => ({ text }) satisfies RawQuery },
    clientErrorHandler: refuseUnparsable,
    frameworkErrors: (error, request, reply) => void sendProblem(request, reply, translate(error)),
  })
  server.decorateRequest('sessionTag', '')
  addBaseHeaders(server, config)
  addRequestLog(server, metrics)
  refuseWhileClosing(server)
  server.setErrorHandler((error, request, reply) => {
    const problem = translate(error)
    if (problem.status >= 500) request.log.error({ err: error, code: problem.code }, 'request failed')
    return sendProblem(request, reply, problem)
  })
  return server
}

function addBaseHeaders(server: FastifyInstance, config: Config['http']): void {
  server.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    reply.header('x-content-type-options', 'nosniff')
    const { origin } = request.headers
    const listed = origin !== undefined && origin !== config.publicUrl && config.frontendOrigins.has(origin)
    reply.header('cross-origin-resource-policy', listed ? 'same-site' : 'same-origin')
    if (isPathOf(request.raw.url ?? '', '/auth')) {
      reply.headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    }
    if (config.hsts) reply.header('strict-transport-security', 'max-age=31536000')
    done()
  })
}

/** A connection that was kept alive may still bring a request while the server goes down. */
function refuseWhileClosing(server: FastifyInstance): void {
  let isClosing = false
  server.addHook('preClose', async () => {
    isClosing = true
  })
  server.addHook('onRequest', (_request, reply, done) => {
    if (!isClosing) return done()
    reply.header('connection', 'close')
    done(new Problem('shutting_down', { retryAfterSeconds: 1 }))
  })
}

function addRequestLog(server: FastifyInstance, metrics: Metrics): void {
  server.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unmatched'
    const status = reply.raw.statusCode
    metrics.requests.observe({ method: request.method, route, status }, reply.elapsedTime / 1000)
    server.log.info(
      {
        reqId: request.id,
        method: request.method,
        route,
        status,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        session: request.sessionTag,
        client: request.ip,
      },
      'request',
    )
    done()
  })
}

/** Turns whatever was thrown into what a browser may know of it. */
function translate(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof StoreUnavailable) {
    return new Problem('session_store_unavailable', { retryAfterSeconds: 1, cause: error })
  }
  const { code, statusCode = 500 } = error as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new Problem('body_too_large', { cause: error })
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new Problem('unsupported_media_type', { cause: error })
  if (statusCode >= 400 && statusCode < 500) return new Problem('bad_request', { cause: error })
  return new Problem('internal_error', { cause: error })
}

/** What Node could not parse as HTTP never becomes a request: answer by hand and hang up. */
function refuseUnparsable(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const timedOut = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  const tooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  const status = timedOut
    ? '408 Request Timeout'
    : tooLarge
      ? '431 Request Header Fields Too Large'
      : '400 Bad Request'
  const body = new Problem('bad_request', { status: Number.parseInt(status, 10) }).body(randomUUID())
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
