import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import Fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { Config } from '../config/config.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { Problem } from '../problem.ts'
import { baseHeaders } from './base-headers.ts'
import { withoutPorts } from './client-address.ts'
import { handleError, translate } from './errors.ts'
import type { Guard } from './guard.ts'
import { responseInProgress } from './http-socket.ts'
import { isPathOf } from './known-paths.ts'
import { NO_SCHEMAS } from './no-schemas.ts'
import { PendingResponses } from './pending-responses.ts'
import { requestRecorder } from './request-log.ts'
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
/** No request line that Node takes is longer (`--max-http-header-size`). */
const MAX_TARGET_LENGTH = 16_384
/** Longer than the balancers in front keep idle connections, so that they are the ones who hang up. */
const KEEP_ALIVE_MS = 72_000

/** A Fastify instance with everything that holds for every route: limits, headers, errors, one log line a request. */
export function createServer(
  config: Config['http'],
  logger: FastifyBaseLogger,
  metrics: Metrics,
  guard: Guard,
): FastifyInstance {
  const record = requestRecorder(logger, metrics)
  const pending = new PendingResponses()
  const addBaseHeaders = baseHeaders(config, guard)
  const begin = (request: FastifyRequest, reply: FastifyReply): void => {
    const { socket } = request.raw
    // Not the hook onResponse: it hears nothing of a response whose connection went before it was finished.
    reply.raw.on('close', () => {
      pending.end(socket)
      record(request, reply)
    })
    closeAfterResponse(request, reply)
    addBaseHeaders(request, reply)
  }
  const server = Fastify({
    ...fastifyOptions(config),
    loggerInstance: logger,
    // No hook runs for these: the path itself could not be read.
    frameworkErrors: (error, request, reply) => {
      begin(request, reply)
      void sendProblem(request, reply, translate(error))
    },
  })
  server.decorateRequest('sessionTag', '')
  const hasProxy = config.trustProxy !== false
  // What every request goes through before its route has its say.
  server.addHook('onRequest', (request, reply, done) => {
    if (hasProxy) readForwardedAddresses(request)
    begin(request, reply)
    const { socket } = request.raw
    if (!pending.begin(socket)) {
      reply.hijack()
      return void socket.destroy()
    }
    requireWellFormed(request, reply)
    done()
  })
  // Node remembers an address that was asked for, and knows none of a connection that has gone.
  server.server.on('connection', (socket) => void socket.remoteAddress)
  // An expectation nobody here knows is no reason not to answer (RFC 9110 §10.1.1).
  server.server.on('checkExpectation', (request, response) =>
    server.server.emit('request', request, response),
  )
  refuseWhileClosing(server)
  server.setErrorHandler(handleError)
  return server
}

function fastifyOptions(config: Config['http']): FastifyHttpOptions<Server> {
  return {
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
      shouldUpgradeCallback: mayUpgrade,
    },
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    routerOptions: {
      querystringParser: (text) => ({ text }) satisfies RawQuery,
      // What a parameter may be is for its route to say: a long one is no more malformed than any other that is wrong.
      maxParamLength: MAX_TARGET_LENGTH,
    },
    clientErrorHandler: refuseUnparsable(config),
  }
}

/**
 * Only relays are upgraded: anywhere else the header means nothing, and the request is an ordinary one. So is an upgrade
 * that is pipelined: Node would hand over a connection on which an earlier response is still to be written, and without
 * its listeners and timeouts nothing would ever end that connection.
 */
function mayUpgrade({ url = '', socket }: IncomingMessage): boolean {
  return isPathOf(url, '/ws') && responseInProgress(socket) === undefined
}

/** Makes sure that `request.ip` is the client's address, whatever the gateway in front writes beside it. */
function readForwardedAddresses({ raw: { headers } }: FastifyRequest): void {
  const forwarded = headers['x-forwarded-for']
  if (typeof forwarded === 'string' && forwarded.includes(':')) {
    headers['x-forwarded-for'] = withoutPorts(forwarded)
  }
}

/** Node lets go of a connection that asked for an upgrade: when it gets an HTTP answer instead, nobody else would end it. */
function closeAfterResponse({ raw }: FastifyRequest, reply: FastifyReply): void {
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
