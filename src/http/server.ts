import { randomUUID } from 'node:crypto'
import Fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { Config } from '../config.ts'
import type { Metrics } from '../measure.ts'
import { Problem } from '../problem.ts'
import { StoreUnavailable } from '../store/store.ts'
import { baseHeaders } from './base-headers.ts'
import type { Guard } from './guard.ts'
import { isPathOf } from './known-paths.ts'
import { NO_SCHEMAS } from './no-schemas.ts'
import { limitPipelining } from './pipelining.ts'
import { addRequestLog } from './request-log.ts'
import { sendProblem } from './send-problem.ts'
import { refuseUnparsable } from './unparsable.ts'
import { requireWellFormed } from './well-formed.ts'

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

/** Head and whole of a request must have come within these times: a slow sender holds a connection no longer. */
const HEADERS_TIMEOUT_MS = 15_000
const REQUEST_TIMEOUT_MS = 60_000
const TIMEOUT_CHECK_MS = 1000
/** Problems of calls that a well-meant page does not make. */
const REFUSALS: ReadonlySet<string> = new Set([
  'csrf_rejected',
  'navigation_required',
  'origin_rejected',
  'rate_limited',
])
/** Longer than the balancers in front keep idle connections, so that they are the ones who hang up. */
const KEEP_ALIVE_MS = 72_000

/** A Fastify instance with everything that holds for every route: limits, headers, errors, one log line a request. */
export function createServer(
  config: Config['http'],
  logger: FastifyBaseLogger,
  metrics: Metrics,
  guard: Guard,
): FastifyInstance {
  const addBaseHeaders = baseHeaders(config, guard)
  const server = Fastify({
    loggerInstance: logger,
    schemaController: NO_SCHEMAS,
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: config.trustProxy,
    bodyLimit: config.maxBodyBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: config.connectionIdleMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // It bounds the closing too, which may take as long as DRAIN_SECONDS says.
    pluginTimeout: 0,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // Checked here instead, for HTTP/1.0 too and with a readable answer.
      requireHostHeader: false,
      // Only relays are upgraded: anywhere else the header means nothing, and the request is an ordinary one.
      shouldUpgradeCallback: ({ url = '' }) => isPathOf(url, '/ws'),
    },
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    routerOptions: { querystringParser: (text) => ({ text }) satisfies RawQuery },
    clientErrorHandler: refuseUnparsable(config),
    // No hook runs for these: the path itself could not be read.
    frameworkErrors: (error, request, reply) => {
      hangUpAfterAnswer(request, reply)
      addBaseHeaders(request, reply)
      void sendProblem(request, reply, translate(error))
    },
  })
  server.decorateRequest('sessionTag', '')
  server.addHook('onRequest', (request, reply, done) => {
    hangUpAfterAnswer(request, reply)
    addBaseHeaders(request, reply)
    requireWellFormed(request, reply)
    done()
  })
  // An expectation nobody here knows is no reason not to answer (RFC 9110 §10.1.1).
  server.server.on('checkExpectation', (request, response) =>
    server.server.emit('request', request, response),
  )
  limitPipelining(server)
  addRequestLog(server, metrics)
  refuseWhileClosing(server)
  server.setErrorHandler((error, request, reply) => {
    const problem = translate(error)
    const { code, status } = problem
    if (status >= 500) request.log.error({ err: error, code }, 'request failed')
    else if (REFUSALS.has(code)) request.log.warn({ audit: 'refused', code, client: request.ip }, 'refused')
    return sendProblem(request, reply, problem)
  })
  return server
}

/** Node lets go of a connection that asked for an upgrade: when it gets an HTTP answer instead, nobody else would end it. */
function hangUpAfterAnswer({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (!(raw as typeof raw & { upgrade?: boolean }).upgrade) return
  reply.header('connection', 'close')
  reply.raw.once('finish', () => raw.socket.destroy())
}

/** A connection that was kept alive may still bring a request while the server goes down. */
function refuseWhileClosing(server: FastifyInstance): void {
  let isClosing = false
  server.addHook('preClose', async () => {
    isClosing = true
  })
  server.addHook('onRequest', (request, reply, done) => {
    // A page cannot read this of a relay: there the close frame says so.
    if (!isClosing || isPathOf(request.raw.url ?? '', '/ws')) return done()
    reply.header('connection', 'close')
    done(new Problem('shutting_down', { retryAfterSeconds: 1 }))
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
