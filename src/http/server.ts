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
import type { Span } from '../telemetry/traces/span.ts'
import { NO_TRACES, type Traces } from '../telemetry/traces/traces.ts'
import { Problem } from '../problem.ts'
import { addBaseHeaders, baseHeaders } from './base-headers.ts'
import { closeUnusedConnections } from './closing.ts'
import { handleError, toProblem } from './errors.ts'
import type { Guard } from './guard.ts'
import { PendingResponses, responseInProgress } from './http-socket.ts'
import { isPathOf } from './known-paths.ts'
import { NO_SCHEMAS } from './listener.ts'
import { readBeforeJudging } from './read-before-judging.ts'
import { requestRecorder } from './request-log.ts'
import { sendProblem } from './problem-pages.ts'
import { refuseUnparsable } from './unparsable.ts'
import { hasBody, requireWellFormed } from './well-formed.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Short keyed hash of the session in use, for the log; empty without one. */
    sessionTag: string
    /** The log tag of the subject of that session; undefined where it is not known. */
    subjectTag: string | undefined
    /** Makes the log tag of the trading account that the path names; undefined where it names none. */
    accountTag: (() => string) | undefined
  }
}

/** The raw query string. Each route parses it itself, so that it notices a repeated parameter. */
export interface RawQuery {
  readonly text: string
}

/** Timeouts for the headers and for the whole of a request. They bound how long a slow sender holds a connection. */
const HEADERS_TIMEOUT_MS = 15_000
const REQUEST_TIMEOUT_MS = 60_000
const TIMEOUT_CHECK_MS = 1000
/** Node accepts no longer request line (`--max-http-header-size`). */
const MAX_TARGET_LENGTH = 16_384
/** Longer than balancers keep idle connections, so that the balancer closes first and never meets a closed connection. */
const KEEP_ALIVE_MS = 72_000
/** An address with the port that some gateways append. */
const WITH_PORT = /^[ \t]*(?:\[([0-9A-Fa-f:.]+)\]|(\d+(?:\.\d+){3}))(?::\d{1,5})?[ \t]*$/

/** Makes a Fastify instance with what all routes share: limits, headers, error handling, one log line per request. */
export function createServer(
  config: Config['http'],
  logger: FastifyBaseLogger,
  metrics: Metrics,
  guard: Guard,
  traces: Traces = NO_TRACES,
): FastifyInstance {
  const record = requestRecorder(logger, metrics)
  const pending = new PendingResponses()
  const prepareHeaders = baseHeaders(config, guard)
  const begin = (request: FastifyRequest, reply: FastifyReply): Span => {
    // First, because the response may be that of a fault of this server.
    closeAfterResponse(request, reply)
    const span = traces.request(request)
    // The hook onResponse would miss a response whose connection closes before it is finished.
    reply.raw.on('close', () => record(request, reply, span))
    prepareHeaders(request, reply)
    return span
  }
  const hasProxy = config.trustProxy !== false
  const receive = (request: FastifyRequest, reply: FastifyReply, proceed: () => void): void => {
    if (hasProxy) stripForwardedPorts(request)
    begin(request, reply).run(() => {
      if (!pending.begin(request.raw, reply.raw)) return void reply.hijack()
      requireWellFormed(request, reply)
      dropUnwantedBody(request)
      proceed()
    })
  }
  const server = Fastify({
    ...fastifyOptions(config),
    loggerInstance: logger,
    // Fastify runs no hooks for these errors, because it could not read the path.
    frameworkErrors: (error, request, reply) => {
      try {
        receive(request, reply, () => {
          throw error
        })
      } catch (fault) {
        addBaseHeaders(reply)
        void sendProblem(request, reply, toProblem(fault))
      }
    },
  })
  decorate(server)
  server.addHook('onRequest', receive)
  prepareConnections(server.server)
  refuseWhileClosing(server)
  closeUnusedConnections(server)
  server.setErrorHandler(handleError)
  return server
}

/** What Node does otherwise by default. */
function prepareConnections(server: Server): void {
  // Reading the address makes Node cache it. Otherwise it would be unknown once the connection has closed.
  server.on('connection', (socket) => void socket.remoteAddress)
  // The server ignores an unknown expectation and handles the request (RFC 9110 §10.1.1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  // By default some versions of Node.js leave out the headers after the thousandth, which its parser of the framing has obeyed.
  server.maxHeadersCount = 0
  readBeforeJudging(server)
}

/** Declares what is known of a request and its response later on. A response that Fastify sends gets its headers at the end. */
function decorate(server: FastifyInstance): void {
  server.decorateRequest('sessionTag', '')
  server.decorateRequest('subjectTag')
  server.decorateRequest('accountTag')
  server.decorateReply('baseHeaders')
  server.addHook('onSend', (_request, reply, _payload, done) => {
    addBaseHeaders(reply)
    done()
  })
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
    // This timeout would also bound closing, which may take as long as DRAIN_SECONDS.
    pluginTimeout: 0,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // requireWellFormed checks this instead, for HTTP/1.0 too and with a readable response.
      requireHostHeader: false,
      shouldUpgradeCallback: mayUpgrade,
    },
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    routerOptions: {
      querystringParser: (text) => ({ text }) satisfies RawQuery,
      // Each route checks its own parameters, their length included.
      maxParamLength: MAX_TARGET_LENGTH,
    },
    clientErrorHandler: refuseUnparsable(config),
  }
}

/**
 * Only relays are upgraded. Elsewhere the Upgrade header is ignored, and so is that of a pipelined request: Node would hand
 * over a connection with an earlier response still unwritten, and without Node's listeners and timeouts nothing would
 * ever close that connection. Nor is one with a body upgraded: Node 24 would take the body for frames, and Node 26 hand over the
 * connection in a wrapper that is no socket.
 */
function mayUpgrade(request: IncomingMessage): boolean {
  const { url = '', socket } = request
  return isPathOf(url, '/ws') && responseInProgress(socket) === undefined && !hasBody(request)
}

/**
 * Removes the ports that some gateways write into X-Forwarded-For (`192.0.2.1:4711`, `[2001:db8::1]:4711`). With a port
 * no address would match TRUST_PROXY, and every connection would count as another client.
 */
function stripForwardedPorts({ raw: { headers } }: FastifyRequest): void {
  const forwarded = headers['x-forwarded-for']
  if (typeof forwarded !== 'string' || !forwarded.includes(':')) return
  const elements = forwarded.split(',').map((element) => {
    const [, bracketed, dotted] = WITH_PORT.exec(element) ?? []
    return bracketed ?? dotted ?? element
  })
  headers['x-forwarded-for'] = elements.join(',')
}

/**
 * Reads and drops the body of a GET. No handler would read it, so it would be kept for as long as the request waits, in
 * pieces as small as its sender likes.
 */
function dropUnwantedBody({ raw }: FastifyRequest): void {
  const { method, headers } = raw
  // The frames of a socket follow its handshake, and are no body.
  if ((method !== 'GET' && method !== 'HEAD') || isUpgrade(raw)) return
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) raw.resume()
}

/** Closes a connection whose upgrade got an HTTP response instead. Node has released it and would leave it open. */
function closeAfterResponse({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (!isUpgrade(raw)) return
  reply.header('connection', 'close')
  reply.raw.once('finish', () => raw.socket.destroy())
}

function isUpgrade(raw: IncomingMessage & { readonly upgrade?: boolean }): boolean {
  return raw.upgrade === true
}

/** Refuses the requests that kept-alive connections still bring while the server shuts down. */
function refuseWhileClosing(server: FastifyInstance): void {
  let isClosing = false
  server.addHook('preClose', async () => {
    isClosing = true
  })
  server.addHook('onRequest', (request, reply, done) => {
    // A page cannot read the response to a WebSocket handshake. There the close code of the relay says it.
    if (!isClosing || isPathOf(request.raw.url ?? '', '/ws')) return done()
    reply.header('connection', 'close')
    done(new Problem('shutting_down', { retryAfterSeconds: 1 }))
  })
}
