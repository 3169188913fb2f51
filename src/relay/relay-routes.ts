import fastifyWebsocket from '@fastify/websocket'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import { ID } from '../catalog/endpoint.ts'
import { Problem } from '../problem.ts'
import { Caps } from './caps.ts'
import { Handshake } from './handshake.ts'
import { OtpClient } from './otp.ts'
import { RelayRegistry } from './registry.ts'
import type { RelayParts } from './relay-parts.ts'
import { closeSocket } from './relay.ts'

declare module 'fastify' {
  interface FastifyRequest {
    handshake: Handshake | null
  }
}

/** `GET /ws/public` and `GET /ws/trading/:accountId`. */
export async function relayRoutes(fastify: FastifyInstance, parts: RelayParts): Promise<void> {
  const { config, guard } = parts
  const registry = new RelayRegistry(parts.metrics)
  const caps = new Caps(config)
  const otp = new OtpClient(parts.rest, config, parts.upstream)
  fastify.decorateRequest('handshake', null)
  await fastify.register(fastifyWebsocket, {
    options: { perMessageDeflate: false, maxPayload: config.maxMessageBytes },
    errorHandler: (error, socket) => {
      parts.log.error({ err: error }, 'a relay failed')
      socket.terminate()
    },
    preClose: (done) => void registry.closeAll(parts.drainMs / 2).then(() => done()),
  })

  // First of all, and readable: before the 101 a page is told nothing but that it failed.
  fastify.addHook('onRequest', async (request) => {
    const { origin } = request.headers
    if (!request.ws && (origin === undefined || guard.isListed(origin))) throw new Problem('upgrade_required')
    if (!guard.isListed(origin)) throw new Problem('origin_rejected')
  })

  const join = (socket: WebSocket, request: FastifyRequest): void => {
    const { handshake } = request
    if (handshake === null) return socket.terminate()
    const ending = handshake.join(socket, registry)
    if (ending !== undefined) closeSocket(socket, ending)
  }
  const shake = (request: FastifyRequest): Handshake => {
    const handshake = new Handshake(request, { ...parts, caps, otp })
    request.handshake = handshake
    return handshake
  }

  const openPublic = async (request: FastifyRequest): Promise<void> => shake(request).openPublic()
  fastify.get('/ws/public', { websocket: true, preHandler: openPublic }, join)

  const openTrading = async (request: FastifyRequest): Promise<void> => {
    const { accountId = '' } = request.params as { accountId?: string }
    if (!ID.test(accountId)) throw new Problem('not_found')
    await shake(request).openTrading(accountId)
  }
  fastify.get('/ws/trading/:accountId', { websocket: true, preHandler: openTrading }, join)
}
