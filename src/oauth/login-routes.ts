import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RawQuery } from '../http/server.ts'
import { StoreUnavailable } from '../store/store.ts'
import { readAttribution, type Attribution } from './attribution.ts'
import { failureUrl, type Flow } from './auth-error.ts'
import type { AuthParts } from './auth-parts.ts'
import { safeReturnTo } from './return-to.ts'

type StartRequest = FastifyRequest<{ Querystring: RawQuery }>

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
    // Let through as no other destination; one that names none is no browser, or an old one.
    const isNavigation = request.headers['sec-fetch-dest'] === 'document'
    metrics.attributionLinks.inc({ outcome: link.outcome, by: isNavigation ? 'navigation' : 'fetch' })
    announce(reply, link)
    if (link.outcome === 'complete' && attributionCookie.enabled) {
      // Also when the start fails below: the partner must outlast an outage.
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
  request: StartRequest,
  reply: FastifyReply,
  flow: Flow,
  signup?: { values: Attribution; isComplete: boolean },
): Promise<FastifyReply> {
  const { config, transactions, provider, cookie } = parts
  const query = new URLSearchParams(request.query.text)
  const returnTo = safeReturnTo(query.getAll('return_to'), config.frontendUrl)
  const tryLater = (reason: 'limit' | 'store', err?: unknown) => {
    parts.metrics.logins.inc({ flow, outcome: 'try_later' })
    request.log.warn({ audit: 'login_not_started', flow, reason, err }, 'a login could not be started')
    return reply.redirect(failureUrl(config.frontendUrl, 'try_later', { flow, returnTo }), 303)
  }
  if (!(await parts.startLimit.allows(request.ip))) return tryLater('limit')

  const { cookie: cookies } = request.headers
  const wish = {
    ...{ flow, returnTo },
    attributed: signup?.isComplete ?? false,
    sessionKey: cookie.key(cookies),
  }
  const started = await transactions.start(cookies, wish).catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error
    return error
  })
  if (started instanceof StoreUnavailable) return tryLater('store', started)

  const { ticket, stale } = started
  const { name, value, state } = ticket.cookie
  for (const old of stale) reply.setCookie(old, '', transactions.attributes(0))
  reply.setCookie(name, value, transactions.attributes())
  const { verifier } = ticket.transaction
  const address = await provider.authorizationUrl({
    ...{ state, verifier },
    ...(signup && { signup: signup.values }),
  })
  return reply.redirect(address.href, 303)
}
