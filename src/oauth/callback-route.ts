import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RawQuery } from '../http/server.ts'
import { saveNewSession } from '../session/session-writer.ts'
import { sessionKey } from '../store/keys.ts'
import { StoreUnavailable } from '../store/store.ts'
import { recordOf } from './access-tokens.ts'
import { failureUrl, type AuthError, type AuthParts } from './auth-parts.ts'
import type { LoginTicket } from './login-transactions.ts'
import { refusalCode, type TokenGrant } from './provider.ts'

type CallbackRequest = FastifyRequest<{ Querystring: RawQuery }>

/** `GET /auth/callback`: finishes a login, and always goes back to the frontend. */
export async function callbackRoute(fastify: FastifyInstance, parts: AuthParts): Promise<void> {
  fastify.get<{ Querystring: RawQuery }>('/auth/callback', async (request, reply) => {
    parts.guard.requireNavigation(request)
    try {
      return await callback(parts, request, reply)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      return fail(parts, request, reply, 'try_later', error)
    }
  })
}

async function callback(
  parts: AuthParts,
  request: CallbackRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const query = new URLSearchParams(request.query.text)
  const [state, ...more] = query.getAll('state')
  const error = query.get('error')
  if (state === undefined && error !== null) return fail(parts, request, reply, refusalCode(error))
  if (state === undefined || more.length > 0) return fail(parts, request, reply, 'state_mismatch')

  const { transactions, config } = parts
  const { cookie: cookies } = request.headers
  // Read before the login goes on: of two that finish at the same moment, neither may end the other's session.
  const earlier = await transactions.sessionsMade(cookies)
  const consumed = await transactions.consume(cookies, state)
  switch (consumed.is) {
    case 'unknown':
      return fail(parts, request, reply, 'state_mismatch')
    case 'replayed': {
      const { outcome } = consumed
      return outcome.is === 'finished'
        ? reply.redirect(config.frontendUrl + outcome.returnTo, 303)
        : reply.redirect(failureUrl(config.frontendUrl, outcome.code as AuthError, outcome), 303)
    }
    case 'fresh':
      return exchange(parts, request, reply, consumed.ticket, earlier)
  }
}

async function exchange(
  parts: AuthParts,
  request: CallbackRequest,
  reply: FastifyReply,
  ticket: LoginTicket,
  earlier: readonly string[],
): Promise<FastifyReply> {
  const { state, transaction } = ticket
  const outcome = await parts.provider.exchange(request.query.text, state, transaction.verifier)
  switch (outcome.is) {
    case 'unavailable':
      return fail(parts, request, reply, 'provider_unavailable', outcome.cause, ticket)
    case 'refused':
      return fail(parts, request, reply, outcome.code, outcome.cause, ticket)
    case 'granted':
      try {
        return await finish(parts, request, reply, ticket, outcome.grant, earlier)
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        // Nobody will ever use these tokens.
        parts.tokens.revoke(outcome.grant)
        return fail(parts, request, reply, 'try_later', error, ticket)
      }
  }
}

async function finish(
  parts: AuthParts,
  request: CallbackRequest,
  reply: FastifyReply,
  ticket: LoginTicket,
  grant: TokenGrant,
  earlier: readonly string[],
): Promise<FastifyReply> {
  const { transactions, sessions, cookie, metrics, attributionCookie } = parts
  const { flow, returnTo, previous, attributed } = ticket.transaction
  if (grant.lifetimeGuessed) request.log.warn({}, 'the provider named no usable expires_in')
  const record = recordOf(grant, { endsAt: Date.now() + parts.sessionMaxMs, loginKey: ticket.key })
  const { id, cookieValue } = await saveNewSession(request, record)
  const key = sessionKey(id)
  const replaced = new Set([...earlier, ...(previous === undefined ? [] : [previous])])
  await Promise.all([...replaced].map((old) => sessions.end(old, 'replaced')))
  await transactions.settle(ticket, { is: 'finished', returnTo, sessionKey: key }, record.endsAt)
  // The browser learns of the session last: whatever failed before this left its old one in place.
  const lifetimeMs = record.endsAt - Date.now()
  reply.setCookie(cookie.name, cookieValue, cookie.attributes(lifetimeMs))
  reply.setCookie(ticket.cookieName, ticket.cookieValue, transactions.attributes(lifetimeMs))
  if (flow === 'signup') {
    metrics.signupsCompleted.inc({ attributed: String(attributed) })
    reply.setCookie(attributionCookie.name, '', attributionCookie.attributes(true))
  }
  metrics.sessionsCreated.inc()
  metrics.logins.inc({ flow, outcome: 'finished' })
  request.log.info({ audit: 'login', flow, session: parts.sessions.tag(key) }, 'logged in')
  return reply.redirect(parts.config.frontendUrl + returnTo, 303)
}

async function fail(
  parts: AuthParts,
  request: CallbackRequest,
  reply: FastifyReply,
  error: AuthError,
  cause?: unknown,
  ticket?: LoginTicket,
): Promise<FastifyReply> {
  const known = ticket?.transaction
  const description = new URLSearchParams(request.query.text).get('error_description')?.slice(0, 500)
  const level = error === 'invalid_client' ? 'error' : 'warn'
  request.log[level](
    { audit: 'login_failed', error, flow: known?.flow, description, err: cause },
    'login failed',
  )
  parts.metrics.logins.inc({ flow: known?.flow ?? 'unknown', outcome: error })
  if (ticket !== undefined) {
    const { flow, returnTo } = ticket.transaction
    // Best effort: without it a callback that comes again is told of an unknown state.
    await parts.transactions
      .settle(ticket, { is: 'failed', code: error, flow, returnTo })
      .catch(() => undefined)
  }
  return reply.redirect(failureUrl(parts.config.frontendUrl, error, known), 303)
}
