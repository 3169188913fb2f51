import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../../problem.ts'
import { ID } from '../../http/known-paths.ts'
import { accountTag } from '../../telemetry/log-tag.ts'
import { socketRoute } from '../socket-route.ts'
import { openPublicRelay, openTradingRelay, type RelayDependencies } from './open-relay.ts'
import { OtpClient } from './otp.ts'

/** `GET /ws/trading/:accountId` and, unless browsers share the market data, `GET /ws/public`. */
export async function relayRoutes(fastify: FastifyInstance, deps: Omit<RelayDependencies, 'otp'>): Promise<void> {
  const { relay, upstream, secrets, feed } = deps.config
  const relayDeps = { ...deps, otp: new OtpClient(deps.clients.oneTimeUrls, relay, upstream) }
  if (!feed.isShared) {
    socketRoute(fastify, '/ws/public', deps, {
      purposeOf: () => ({ kind: 'public' }),
      open: (handshake) => openPublicRelay(handshake, relayDeps),
    })
  }
  socketRoute(fastify, '/ws/trading/:accountId', deps, {
    purposeOf: (request) => ({ kind: 'trading', account: accountTag(secrets, accountIdOf(request)) }),
    open: (handshake) => openTradingRelay(handshake, accountIdOf(handshake.request), relayDeps),
  })
}

/** @throws Problem not_found for what cannot be an account's id */
function accountIdOf({ params }: FastifyRequest): string {
  const { accountId = '' } = params as { accountId?: string }
  if (!ID.test(accountId)) throw new Problem('not_found')
  return accountId
}
