import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { renderPage, wantsPage } from '../http/html.ts'
import { loggedAddress, sourceOf } from '../http/requester.ts'
import type { RawQuery } from '../http/server.ts'
import { StoreUnavailable } from '../store/store.ts'
import { auditBounded } from '../telemetry/bounded-audit.ts'
import type { Attribution } from './attribution.ts'
import { failureUrl, type Flow } from './auth-error.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import { recordKiB } from './login-transactions.ts'
import { announceLink, checkLink, linkDocument, linkPage } from './link-check.ts'
import { safeReturnTo } from './return-to.ts'

type StartRequest = FastifyRequest<{ Querystring: RawQuery }>

/** The routes that start a login or a sign-up, and those with which partners check their sign-up links. */
export async function loginRoutes(fastify: FastifyInstance, deps: LoginDependencies): Promise<void> {
  const { config, guard, metrics, attributionCookie } = deps

  fastify.get<{ Querystring: RawQuery }>('/auth/login', async (request, reply) => {
    guard.requireNavigation(request)
    return start(deps, request, reply, 'login')
  })

  fastify.get<{ Querystring: RawQuery }>('/auth/signup', async (request, reply) => {
    guard.requireNavigation(request)
    const link = checkLink(request.query.text, config.frontendUrl)
    const { values, outcome } = link.reading
    // The guard admits no other destination, but also requests without the header, which come from scripts or old browsers.
    const isNavigation = request.headers['sec-fetch-dest'] === 'document'
    metrics.attributionLinks.inc({ outcome, by: isNavigation ? 'navigation' : 'fetch' })
    announceLink(reply, link)
    if (outcome === 'complete' && attributionCookie.enabled) {
      // Set even if the start fails below, so that the partner is not lost in an outage.
      const value = attributionCookie.value(values)
      reply.setCookie(attributionCookie.name, value, attributionCookie.attributes())
    }
    // The remembered link is used only if the request names no partner at all; links are never merged.
    const remembered = outcome === 'none' ? attributionCookie.read(request.headers.cookie) : undefined
    if (remembered !== undefined) reply.header('x-attribution', 'complete')
    const isComplete = remembered !== undefined || outcome === 'complete'
    return start(deps, request, reply, 'signup', { values: remembered ?? values, isComplete })
  })

  // Partners can check a link with `curl -I`, which starts nothing.
  fastify.head<{ Querystring: RawQuery }>('/auth/signup', async (request, reply) => {
    const link = checkLink(request.query.text, config.frontendUrl)
    announceLink(reply, link)
    // Decoded, so that a wrong encoding is visible, and as JSON, because a value may contain any printable character.
    return reply.header('x-attribution-values', JSON.stringify(link.reading.values)).send()
  })

  fastify.get<{ Querystring: RawQuery }>('/auth/signup/check', async (request, reply) => {
    const link = checkLink(request.query.text, config.frontendUrl)
    announceLink(reply, link)
    return wantsPage(request.headers.accept) ? renderPage(reply, linkPage(link)) : linkDocument(link)
  })

  fastify.route<{ Querystring: RawQuery }>({
    method: ['GET', 'HEAD'],
    url: '/auth/signup/',
    handler: (request, reply) => {
      const { text } = request.query
      return reply.redirect(`/auth/signup${text === '' ? '' : `?${text}`}`, 308)
    },
  })
}

async function start(
  deps: LoginDependencies,
  request: StartRequest,
  reply: FastifyReply,
  flow: Flow,
  signup?: { values: Attribution; isComplete: boolean },
): Promise<FastifyReply> {
  const { config, transactions, provider, sessions } = deps
  const query = new URLSearchParams(request.query.text)
  const returnTo = safeReturnTo(query.getAll('return_to'), config.frontendUrl)
  const tryLater = (reason: 'limit' | 'store', cause?: unknown) => {
    deps.metrics.logins.inc({ flow, outcome: reason === 'limit' ? 'rate_limited' : 'try_later' })
    const details = { flow, reason, error: 'try_later', client: loggedAddress(request.ip), cause }
    auditBounded(request.log, 'login_not_started', details, `${reason}|${sourceOf(request)}`)
    return reply.redirect(failureUrl(config.frontendUrl, 'try_later', { flow, returnTo }), 303)
  }
  if (!(await deps.startLimit.allows(request.ip, recordKiB(returnTo)))) return tryLater('limit')

  const { cookie: cookies } = request.headers
  const options = {
    flow,
    returnTo,
    attributed: signup?.isComplete ?? false,
    sessionKey: sessions.cookie.key(cookies),
  }
  const started = await transactions.start(cookies, options).catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error
    return error
  })
  if (started instanceof StoreUnavailable) return tryLater('store', started)

  const { ticket, stale } = started
  const { name, value, state } = ticket.cookie
  for (const old of stale) reply.setCookie(old, '', transactions.attributes(0))
  reply.setCookie(name, value, transactions.attributes())
  const { verifier } = ticket.transaction
  const address = await provider.authorizationUrl({ state, verifier, signup: signup?.values })
  return reply.redirect(address.href, 303)
}
