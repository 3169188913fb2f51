import type { FastifyInstance } from 'fastify'
import { LOGGED_OUT_PATH, type OpenId } from '../oauth/open-id.ts'
import type { ProviderLogouts } from '../sessions/index.ts'
import type { Store } from '../store/store.ts'
import { BackchannelLogout } from './backchannel-logout.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import { LogoutSenders } from './logout-senders.ts'

const BACKCHANNEL_PATH = '/auth/backchannel-logout'
const MAX_BODY_BYTES = 16_384

interface ProviderLogoutDependencies extends LoginDependencies {
  readonly openId: OpenId
  readonly logouts: ProviderLogouts
  readonly store: Pick<Store, 'openIndex'>
}

/**
 * `GET /auth/logged-out`, where browsers return from a logout at the provider, and `POST /auth/backchannel-logout`, with which
 * the provider ends sessions (OpenID Connect Back-Channel Logout §2.5).
 */
export async function providerLogoutRoutes(fastify: FastifyInstance, deps: ProviderLogoutDependencies): Promise<void> {
  const { config } = deps
  fastify.get(LOGGED_OUT_PATH, (_request, reply) => reply.redirect(`${config.frontendUrl}/?logged_out=provider`, 303))

  const backchannel = config.oidc?.backchannel
  if (backchannel === undefined) return
  const senders = new LogoutSenders(await deps.store.openIndex(), backchannel.from)
  fastify.addHook('onClose', async () => senders.close())
  const logout = new BackchannelLogout({ ...deps, senders })
  await fastify.register(async function backchannelLogout(scope) {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, (_request, body, done) => {
      done(null, body)
    })
    scope.route<{ Body: Buffer | undefined }>({
      method: 'POST',
      url: BACKCHANNEL_PATH,
      onRequest: async (request) => logout.admit(request),
      errorHandler: (error, request, reply) => void logout.fail(error, request, reply),
      handler: async (request, reply) => {
        await logout.end(request, request.body)
        return reply.code(200).send()
      },
    })
  })
}
