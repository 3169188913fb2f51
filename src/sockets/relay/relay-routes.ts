import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../../problem.ts'
import { ID } from '../../proxy/endpoint.ts'
import { logTag } from '../../telemetry/log-tag.ts'
import { Handshake, type Opened } from '../handshake.ts'
import { joinSocket } from '../prepare-sockets.ts'
import type { SocketPurpose } from '../socket-log.ts'
import { openPublicRelay, openTradingRelay, type RelayDependencies } from './open-relay.ts'
import { OtpClient } from './otp.ts'

/** `GET /ws/trading/:accountId` and, unless browsers share the market data, `GET /ws/public`. */
export async function relayRoutes(fastify: FastifyInstance, deps: Omit<RelayDependencies, 'otp'>): Promise<void> {
  const { relay, upstream, secrets, feed } = deps.config
  const relayDeps = { ...deps, otp: new OtpClient(deps.clients.oneTimeUrls, relay, upstream) }
  const shake = (
    request: FastifyRequest,
    reply: FastifyReply,
    purpose: SocketPurpose,
    open: (handshake: Handshake) => Promise<Opened | undefined>,
  ): Promise<void> => {
    const handshake = new Handshake(request, reply, deps, purpose)
    request.handshake = handshake
    return handshake.run(() => open(handshake))
  }

  const openPublic = (request: FastifyRequest, reply: FastifyReply): Promise<void> =>
    shake(request, reply, { kind: 'public' }, (handshake) => openPublicRelay(handshake, relayDeps))
  if (!feed.isShared) fastify.get('/ws/public', { websocket: true, preHandler: openPublic }, joinSocket)

  const openTrading = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { accountId = '' } = request.params as { accountId?: string }
    if (!ID.test(accountId)) throw new Problem('not_found')
    const account = logTag(secrets[0] ?? '', `account:${accountId}`)
    await shake(request, reply, { kind: 'trading', account }, (handshake) =>
      openTradingRelay(handshake, accountId, relayDeps),
    )
  }
  fastify.get('/ws/trading/:accountId', { websocket: true, preHandler: openTrading }, joinSocket)
}
