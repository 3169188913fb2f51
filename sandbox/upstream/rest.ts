import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { bulkPurchaseRoutes } from './rest/bulk-purchase.ts'
import { type CredentialKind, credentialKind } from './rest/credentials.ts'
import { optionsEnvelope } from './rest/envelopes.ts'
import { notFound, wrapFailures } from './rest/handlers.ts'
import { optionsRoutes } from './rest/options.ts'
import { partnerRoutes } from './rest/partners.ts'
import { paymentAgentRoutes } from './rest/payment-agents.ts'
import { paymentRoutes } from './rest/payments.ts'
import { walletRoutes } from './rest/wallets.ts'
import type { ArrivedCall } from './watch.ts'
import type { World } from './world.ts'

/** A REST request that has arrived, whether it succeeded or not. */
export interface SeenRequest extends ArrivedCall {
  /** The kind of credential in the header or the body, valid or not. */
  credential: CredentialKind
}

const BODY_LIMIT_BYTES = 10 * 1024 * 1024
/** Older requests are removed from the list, so that a long demo does not fill the memory. */
const MAX_REQUESTS = 20_000

/** Builds the REST API (docs/upstream.md, The trading service). @param seen receives every request that arrives */
export async function buildRest(world: World, seen: SeenRequest[]): Promise<FastifyInstance> {
  const app = fastify({ bodyLimit: BODY_LIMIT_BYTES, exposeHeadRoutes: false })
  // Bodies are recorded as text. Each route parses its own.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))

  app.addHook('preHandler', async (request) => record(request, seen))
  // A real gateway adds headers like these, which must not reach a browser.
  app.addHook('onSend', async (request, reply, payload) => {
    world.watch?.call(arrived(request), {
      status: reply.statusCode,
      body: String(payload),
      port: request.socket.remotePort ?? 0,
    })
    reply.header('x-ratelimit-remaining', String(299 - (seen.length % 300)))
    reply.header('x-brand', 'sandbox')
    reply.header('set-cookie', 'upstream_affinity=sandbox; Path=/; HttpOnly')
  })

  wrapFailures(app, optionsEnvelope)
  app.setNotFoundHandler(async () => {
    throw notFound('endpoint')
  })
  app.get('/v1/health', async (_request, reply) => reply.type('text/plain; charset=utf-8').send('OK'))
  await app.register(optionsRoutes, { world })
  await app.register(bulkPurchaseRoutes, { world })
  await app.register(walletRoutes, { world })
  await app.register(paymentAgentRoutes, { world })
  await app.register(paymentRoutes, { world })
  await app.register(partnerRoutes, { world })
  await app.ready()
  return app
}

function record(request: FastifyRequest, seen: SeenRequest[]): void {
  if (seen.length >= MAX_REQUESTS) seen.splice(0, MAX_REQUESTS / 2)
  const call = arrived(request)
  seen.push({ ...call, credential: credentialKind(request, call.body) })
}

function arrived({ method, url: path, headers, body }: FastifyRequest): ArrivedCall {
  return { method, path, headers, body: typeof body === 'string' ? body : '' }
}
