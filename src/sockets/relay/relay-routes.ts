import fastifyWebsocket from '@fastify/websocket'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { WebSocket } from 'ws'
import { ID } from '../../proxy/endpoint.ts'
import { Problem } from '../../problem.ts'
import { Caps } from '../caps.ts'
import { CLOSE } from '../close-codes.ts'
import { Handshake, type HandshakeDependencies } from './handshake.ts'
import { OtpClient } from './otp.ts'
import { RelayRegistry } from '../registry.ts'
import type { RelayDependencies } from './relay-dependencies.ts'
import { closeSocket } from './relay.ts'
import { messageLimits, SOCKET_OPTIONS } from '../socket-options.ts'
import { TradingAccess } from './trading-access.ts'

declare module 'fastify' {
  interface FastifyRequest {
    handshake: Handshake | null
  }
}

/** A nonce of 16 bytes (RFC 6455 §4.1). */
const KEY = /^[+/0-9A-Za-z]{22}==$/

/** A token (RFC 9110 §5.6.2), blanks around it. */
const SUBPROTOCOL = /^[ \t]*([!#$%&'*+.^_`|~\w-]+)[ \t]*$/

/** `GET /ws/public` and `GET /ws/trading/:accountId`. */
export async function relayRoutes(fastify: FastifyInstance, deps: RelayDependencies): Promise<void> {
  const { config, guard, metrics, drainMs } = deps
  const registry = new RelayRegistry()
  metrics.relayLimit.set(config.maxRelays)
  metrics.relayTraffic.bufferedBytes = () => registry.bufferedBytes
  const access = new TradingAccess(deps.sessions, new OtpClient(deps.rest, config, deps.upstream))
  const handshakeDeps: HandshakeDependencies = { ...deps, caps: new Caps(config), access, registry }
  fastify.decorateRequest('handshake', null)
  await fastify.register(fastifyWebsocket, {
    options: {
      ...SOCKET_OPTIONS,
      ...messageLimits(config.maxMessageBytes),
      // Upstream is offered none, so none is spoken.
      handleProtocols: () => false,
    },
    errorHandler: (error, socket) => {
      // A browser that broke the protocol has been told by ws, and its relay has heard of it.
      if (socket.readyState !== WebSocket.OPEN) return
      deps.log.error({ err: error }, 'a relay failed')
      closeSocket(socket, CLOSE.ourFault)
    },
    preClose: (done) => void drain(registry, fastify.websocketServer.clients, drainMs).then(() => done()),
  })

  fastify.addHook('onRequest', async (request, reply) => {
    // First of all. A script of a foreign page learns nothing but that it failed.
    const { origin } = request.headers
    if (!guard.isListed(origin) && (request.ws || origin !== undefined)) {
      metrics.relayRefusals.inc({ reason: 'origin_rejected' })
      throw guard.refusal('origin_rejected', request)
    }
    requireWebSocket(request, reply)
  })

  const shake = (request: FastifyRequest, reply: FastifyReply): Handshake => {
    const handshake = new Handshake(request, reply, handshakeDeps)
    request.handshake = handshake
    return handshake
  }

  const openPublic = async (request: FastifyRequest, reply: FastifyReply): Promise<void> =>
    shake(request, reply).openPublic()
  fastify.get('/ws/public', { websocket: true, preHandler: openPublic }, join)

  const openTrading = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { accountId = '' } = request.params as { accountId?: string }
    if (!ID.test(accountId)) throw new Problem('not_found')
    await shake(request, reply).openTrading(accountId)
  }
  fastify.get('/ws/trading/:accountId', { websocket: true, preHandler: openTrading }, join)
}

function join(socket: WebSocket, request: FastifyRequest): void {
  request.handshake?.join(socket)
}

/** What ws would refuse in the end is refused before a place or a one-time URL is spent on it. @throws Problem */
function requireWebSocket({ ws, headers }: FastifyRequest, reply: FastifyReply): void {
  if (!ws || headers.upgrade?.toLowerCase() !== 'websocket') {
    reply.headers({ upgrade: 'websocket', connection: 'upgrade, close' })
    throw new Problem('upgrade_required')
  }
  if (headers['sec-websocket-version'] !== '13') {
    reply.header('sec-websocket-version', '13')
    throw new Problem('upgrade_required', { detail: 'Version 13 of the WebSocket protocol is spoken here.' })
  }
  if (!KEY.test(headers['sec-websocket-key'] ?? '')) throw new Problem('bad_request')
  const { 'sec-websocket-protocol': protocols } = headers
  if (protocols !== undefined && !areSubprotocols(protocols)) {
    throw new Problem('bad_request', { detail: 'Sec-WebSocket-Protocol is malformed.' })
  }
}

/** Names of subprotocols, none of them twice (RFC 6455 §4.1). */
function areSubprotocols(list: string): boolean {
  const names = list.split(',').map((element) => SUBPROTOCOL.exec(element)?.[1])
  return !names.includes(undefined) && new Set(names).size === names.length
}

/** Tells all browsers to come back, spread over half of the time there is, and then waits only so long for them. */
async function drain(
  registry: RelayRegistry,
  clients: ReadonlySet<WebSocket>,
  drainMs: number,
): Promise<void> {
  await registry.closeAll(drainMs / 2)
  const hardEnd = setTimeout(() => {
    for (const client of clients) client.terminate()
  }, drainMs / 4)
  hardEnd.unref()
}
