import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RawQuery } from '../http/server.ts'
import { StoreUnavailable } from '../store/store.ts'
import { readAttribution, type Attribution } from './attribution.ts'
import { failureUrl, type AuthParts } from './auth-parts.ts'
import type { Flow } from './login-transactions.ts'
import { safeReturnTo } from './return-to.ts'

/** `GET /auth/login`, `GET` and `HEAD /auth/signup`: where a browser starts. */
export async function loginRoutes(fastify: FastifyInstance, parts: AuthParts): Promise<void> {
  const { guard, metrics, attributionCookie } = parts

  fastify.get<{ Querystring: RawQuery }>('/auth/login', async (request, reply) => {
    guard.requireNavigation(request)
    return start(parts, request, reply, 'login')
  })

  fastify.get<{ Querystring: RawQuery }>('/auth/signup', async (request, reply) => {
    guard.requireNavigation(request)
    const link = readAttribution(new URLSearchParams(request.query.text))
    const isNavigation = request.headers['sec-fetch-mode'] === 'navigate'
    metrics.attributionLinks.inc({ outcome: link.outcome, by: isNavigation ? 'navigation' : 'fetch' })
    announce(reply, link)
    if (link.outcome === 'complete' && attributionCookie.enabled) {
      const value = attributionCookie.value(link.values)
      reply.setCookie(attributionCookie.name, value, attributionCookie.attributes())
    }
    // Remembered only for a sign-up that names no partner at all: never merged with another link.
    const remembered = link.outcome === 'none' ? attributionCookie.read(request.headers.cookie) : undefined
    if (remembered !== undefined) reply.header('x-attribution', 'complete')
    const isComplete = remembered !== undefined || link.outcome === 'complete'
    return start(parts, request, reply, 'signup', { values: remembered ?? link.values, isComplete })
  })

  // For partners: `curl -I` tells whether a link is complete, and starts nothing.
  fastify.head<{ Querystring: RawQuery }>('/auth/signup', async (request, reply) => {
    announce(reply, readAttribution(new URLSearchParams(request.query.text)))
    return reply.code(200).send()
  })
}

function announce(reply: FastifyReply, link: { outcome: string; problems: string }): void {
  reply.header('x-attribution', link.outcome)
  if (link.problems !== '') reply.header('x-attribution-problems', link.problems)
}

async function start(
  parts: AuthParts,
  request: FastifyRequest<{ Querystring: RawQuery }>,
  reply: FastifyReply,
  flow: Flow,
  signup?: { values: Attribution; isComplete: boolean },
): Promise<FastifyReply> {
  const { config, transactions, provider, cookie } = parts
  const query = new URLSearchParams(request.query.text)
  const returnTo = safeReturnTo(query.getAll('return_to'), config.frontendUrl)
  const { cookie: cookies } = request.headers
  try {
    const sessionKey = cookie.key(cookies)
    const attributed = signup?.isComplete ?? false
    const { ticket, stale } = await transactions.start(cookies, { flow, returnTo, attributed, sessionKey })
    const { state, cookieName, cookieValue, transaction } = ticket
    for (const name of stale) reply.setCookie(name, '', transactions.attributes(0))
    reply.setCookie(cookieName, cookieValue, transactions.attributes())
    const { verifier } = transaction
    const address = await provider.authorizationUrl({
      state,
      verifier,
      ...(signup && { signup: signup.values }),
    })
    return await reply.redirect(address.href, 303)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    request.log.warn({ err: error, flow }, 'a login could not be started')
    return reply.redirect(failureUrl(config.frontendUrl, 'try_later', { flow, returnTo }), 303)
  }
}
