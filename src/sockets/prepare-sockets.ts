import type { IncomingMessage } from 'node:http'
import fastifyWebsocket from '@fastify/websocket'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { WebSocket } from 'ws'
import type { Config } from '../config/config.ts'
import type { Guard } from '../http/guard.ts'
import { noteAccount } from '../http/requester.ts'
import { hasBody } from '../http/well-formed.ts'
import { Problem } from '../problem.ts'
import type { Sessions } from '../sessions/index.ts'
import { budgetKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Budget } from '../upstream/budget/admission.ts'
import { Caps } from '../limits/caps.ts'
import { CLOSE, closeSocket } from './close-codes.ts'
import { SocketRegistry } from './registry.ts'
import { Returns } from './returns.ts'
import { socketOptions } from './socket-options.ts'

/** The parameter of a path that is the id of a trading account. */
const ACCOUNT_ID = 'accountId'
/** A nonce of 16 bytes (RFC 6455 §4.1). */
const KEY = /^[+/0-9A-Za-z]{22}==$/

/** A token (RFC 9110 §5.6.2) with optional whitespace around it. */
const SUBPROTOCOL = /^[ \t]*([!#$%&'*+.^_`|~\w-]+)[ \t]*$/

/** The parts of the server that the sockets of every kind share. */
export interface SocketDependencies {
  readonly sessions: Sessions
  readonly metrics: Metrics
  readonly log: FastifyBaseLogger
  readonly caps: Caps
  readonly registry: SocketRegistry
  /** Absent without UPSTREAM_BUDGET. */
  readonly returns: Returns | undefined
}

interface SharedDependencies extends Omit<SocketDependencies, 'caps' | 'registry' | 'returns'> {
  readonly config: Config
  readonly guard: Guard
  readonly store: Store
  readonly budget: Budget | undefined
}

/** Prepares the scope of the routes below /ws. Sockets of every kind share the checks, the caps and the drain. */
export async function prepareSockets<Dependencies extends SharedDependencies>(
  fastify: FastifyInstance,
  deps: Dependencies,
): Promise<Dependencies & SocketDependencies> {
  const { config, metrics, log, store } = deps
  const registry = new SocketRegistry(config.relay.maxWaitingBytes, metrics)
  const returns = createReturns(deps)
  metrics.relayLimit.set(config.relay.maxRelays)
  metrics.relayWaitingLimit.set(config.relay.maxWaitingBytes)
  metrics.relayTraffic.bufferedBytes = () => registry.waitingBytes
  const drainMs = config.drainMs - config.drainWaitMs
  fastify.decorateRequest('handshake', null)
  await fastify.register(fastifyWebsocket, {
    options: {
      ...socketOptions(config.relay.maxMessageBytes),
      // This server offers upstream no subprotocol, so it must not agree on one with the browser.
      handleProtocols: () => false,
    },
    errorHandler: (error, socket) => {
      // After a protocol violation ws has already closed the socket, and its relay knows.
      if (socket.readyState !== WebSocket.OPEN) return
      log.error({ err: error }, 'a socket failed')
      closeSocket(socket, CLOSE.ourFault)
    },
    preClose: (done) => {
      // Version 11.3.7 of the plugin has just removed its listener; a handshake on an open connection still gets a close code.
      if (fastify.server.listenerCount('upgrade') === 0) fastify.server.on('upgrade', onUpgrade)
      void drain({ registry, returns }, fastify.websocketServer.clients, drainMs).then(() => done())
    },
  })
  const onUpgrade = pluginListener(fastify)
  // The 101 is written by ws, which knows only the raw request.
  const replies = new WeakMap<IncomingMessage, FastifyReply>()
  fastify.websocketServer.on('headers', (lines, request) => {
    const { baseHeaders = [] } = replies.get(request) ?? {}
    for (let index = 0; index < baseHeaders.length; index += 2) {
      lines.push(`${baseHeaders[index]}: ${baseHeaders[index + 1]}`)
    }
  })
  fastify.addHook('onRequest', async (request, reply) => {
    noteAccount(request, ACCOUNT_ID, config.secrets)
    // First of all, so that a script of a foreign page learns nothing but that it failed.
    requireListedOrigin(request, deps)
    requireWebSocket(request, reply)
    replies.set(request.raw, reply)
  })
  return { ...deps, caps: new Caps(config.relay, store), registry, returns }
}

/** What the plugin does with a handshake: it is the only listener. @throws if it is not */
function pluginListener({ server }: FastifyInstance): (...upgrade: unknown[]) => void {
  const [listener, ...others] = server.listeners('upgrade')
  if (listener === undefined || others.length > 0) throw new Error('handshakes need exactly one listener')
  return (...upgrade) => void Reflect.apply(listener, server, upgrade)
}

function createReturns({ config, budget, store, log }: SharedDependencies): Returns | undefined {
  const { budget: settings } = config.upstream
  if (settings === undefined || budget === undefined) return undefined
  const enqueue = (durationMs: number): Promise<number> =>
    store.limits.enqueue(budgetKey('returns', settings.name), durationMs)
  return new Returns({ budget, instances: settings.instances, enqueue, log })
}

/** @throws Problem origin_rejected */
function requireListedOrigin(
  request: FastifyRequest,
  { guard, metrics }: Pick<SharedDependencies, 'guard' | 'metrics'>,
): void {
  const { ws, headers } = request
  // A GET to the page's own origin has no Origin: such as one to a proxy that also serves the page.
  const origin = headers.origin ?? (ws ? undefined : URL.parse(headers.referer ?? '')?.origin)
  if (guard.isListed(origin) || (!ws && origin === undefined)) return
  metrics.relayRefusals.inc({ reason: 'origin_rejected' })
  throw guard.readableRefusal(origin)
}

/** What a 426 must have (RFC 9110 §15.5.22). */
const UPGRADE = { upgrade: 'websocket', connection: 'upgrade, close' } as const

/** Refuses what ws would refuse in the end, before it costs a permit or a one-time URL. @throws Problem */
function requireWebSocket({ ws, headers }: FastifyRequest, reply: FastifyReply): void {
  if (headers.upgrade !== undefined && hasBody({ headers })) {
    throw new Problem('bad_request', { detail: 'The handshake of a WebSocket has no body.' })
  }
  if (!ws || headers.upgrade?.toLowerCase() !== 'websocket') {
    reply.headers(UPGRADE)
    throw new Problem('upgrade_required')
  }
  if (headers['sec-websocket-version'] !== '13') {
    reply.headers({ ...UPGRADE, 'sec-websocket-version': '13' })
    throw new Problem('upgrade_required', { detail: 'Only version 13 of the WebSocket protocol is supported here.' })
  }
  if (!KEY.test(headers['sec-websocket-key'] ?? '')) throw new Problem('bad_request')
  const { 'sec-websocket-protocol': protocols } = headers
  if (protocols !== undefined && !areSubprotocols(protocols)) {
    throw new Problem('bad_request', { detail: 'Sec-WebSocket-Protocol is malformed.' })
  }
}

/** Distinct names of subprotocols (RFC 6455 §4.1). */
function areSubprotocols(list: string): boolean {
  const names = list.split(',').map((element) => SUBPROTOCOL.exec(element)?.[1])
  return !names.includes(undefined) && new Set(names).size === names.length
}

/** Asks all browsers to reconnect elsewhere, spread over half of the time, and soon after that cuts off those that stay. */
async function drain(
  { registry, returns }: Pick<SocketDependencies, 'registry' | 'returns'>,
  clients: ReadonlySet<WebSocket>,
  drainMs: number,
): Promise<void> {
  await registry.closeAll(drainMs / 2, returns?.drain(drainMs / 8))
  const hardEnd = setTimeout(() => {
    for (const client of clients) client.terminate()
  }, drainMs / 4)
  hardEnd.unref()
  await registry.endRests(drainMs / 8)
}
