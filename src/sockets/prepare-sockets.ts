import fastifyWebsocket from '@fastify/websocket'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { WebSocket } from 'ws'
import type { Config } from '../config/config.ts'
import type { Guard } from '../http/guard.ts'
import type { Store } from '../store/store.ts'
import { Caps } from './caps.ts'
import { CLOSE, closeSocket } from './close-codes.ts'
import type { Handshake } from './handshake.ts'
import { SocketRegistry } from './registry.ts'
import type { SocketDependencies } from './socket-dependencies.ts'
import { messageLimits, SOCKET_OPTIONS } from './socket-options.ts'
import { requireWebSocket } from './websocket-request.ts'

declare module 'fastify' {
  interface FastifyRequest {
    handshake: Handshake | null
  }
}

interface SharedDependencies extends Omit<SocketDependencies, 'caps' | 'registry'> {
  readonly config: Config
  readonly guard: Guard
  readonly store: Store
}

/** Prepares the scope of the routes below /ws. Sockets of every kind share the checks, the caps and the drain. */
export async function prepareSockets<Dependencies extends SharedDependencies>(
  fastify: FastifyInstance,
  deps: Dependencies,
): Promise<Dependencies & SocketDependencies> {
  const { config, metrics, log, store } = deps
  const registry = new SocketRegistry()
  metrics.relayLimit.set(config.relay.maxRelays)
  metrics.relayTraffic.bufferedBytes = () => registry.bufferedBytes
  const drainMs = config.drainMs - config.drainWaitMs
  fastify.decorateRequest('handshake', null)
  await fastify.register(fastifyWebsocket, {
    options: {
      ...SOCKET_OPTIONS,
      ...messageLimits(config.relay.maxMessageBytes),
      // This server offers upstream no subprotocol, so it must not agree on one with the browser.
      handleProtocols: () => false,
    },
    errorHandler: (error, socket) => {
      // After a protocol violation ws has already closed the socket, and its relay knows.
      if (socket.readyState !== WebSocket.OPEN) return
      log.error({ err: error }, 'a socket failed')
      closeSocket(socket, CLOSE.ourFault)
    },
    preClose: (done) => void drain(registry, fastify.websocketServer.clients, drainMs).then(() => done()),
  })
  fastify.addHook('onRequest', async (request, reply) => {
    // First of all, so that a script of a foreign page learns nothing but that it failed.
    requireListedOrigin(request, deps)
    requireWebSocket(request, reply)
  })
  return { ...deps, caps: new Caps(config.relay, store), registry }
}

/** The handler of every WebSocket route, once the preHandler has run its handshake. */
export function joinSocket(socket: WebSocket, request: FastifyRequest): void {
  request.handshake?.join(socket)
}

/** @throws Problem origin_rejected */
function requireListedOrigin(
  request: FastifyRequest,
  { guard, metrics }: Pick<SharedDependencies, 'guard' | 'metrics'>,
): void {
  const { origin } = request.headers
  if (guard.isListed(origin) || (!request.ws && origin === undefined)) return
  metrics.relayRefusals.inc({ reason: 'origin_rejected' })
  throw guard.refusal('origin_rejected', request)
}

/** Asks all browsers to reconnect elsewhere, spread over half of the time, and soon after that cuts off those that stay. */
async function drain(registry: SocketRegistry, clients: ReadonlySet<WebSocket>, drainMs: number): Promise<void> {
  await registry.closeAll(drainMs / 2)
  const hardEnd = setTimeout(() => {
    for (const client of clients) client.terminate()
  }, drainMs / 4)
  hardEnd.unref()
}
