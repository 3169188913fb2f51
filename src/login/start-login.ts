import type { FastifyReply, FastifyRequest } from 'fastify'
import { loggedAddress, sourceOf } from '../http/requester.ts'
import type { RawQuery } from '../http/server.ts'
import { StoreUnavailable } from '../store/store.ts'
import { auditBounded } from '../telemetry/audit/audit.ts'
import type { Attribution } from './attribution.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import { recordKiB } from './login-record.ts'
import { failureUrl, safeReturnTo, type AuthError, type Flow } from './return-to.ts'

/** A request that starts a login or a sign-up. */
interface LoginStart {
  readonly deps: LoginDependencies
  readonly request: FastifyRequest<{ Querystring: RawQuery }>
  readonly reply: FastifyReply
  readonly flow: Flow
  readonly signup?: { readonly values: Attribution; readonly isComplete: boolean }
}

/** Why a login was not started. `outcome` is the metric label, where it is not the error. */
interface FailedStart {
  readonly error: AuthError
  readonly outcome?: 'rate_limited'
  readonly reason: 'limit' | 'store' | 'provider'
  readonly cause?: unknown
}

/**
 * Stores a login transaction under a key that is made of its state and of the secret in its cookie, so that no other browser finds it.
 * Then redirects the browser to the provider, or, if that cannot be, back to the frontend with the reason.
 */
export async function startLogin(start: LoginStart): Promise<FastifyReply> {
  const { deps, request, reply, flow, signup } = start
  const { config, transactions, provider, sessions } = deps
  const query = new URLSearchParams(request.query.text)
  const returnTo = safeReturnTo(query.getAll('return_to'), config.frontendUrl)
  if (!(await deps.startLimit.allows(request.ip, recordKiB(returnTo)))) {
    return refuse(start, returnTo, { error: 'try_later', outcome: 'rate_limited', reason: 'limit' })
  }

  const { cookie: cookies } = request.headers
  const options = {
    flow,
    returnTo,
    attributed: signup?.isComplete ?? false,
    sessionKey: sessions.cookie.key(cookies),
    hasNonce: provider.openId !== undefined,
  }
  const started = await transactions.start(cookies, options).catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error
    return error
  })
  if (started instanceof StoreUnavailable) {
    return refuse(start, returnTo, { error: 'try_later', reason: 'store', cause: started })
  }

  const { ticket, stale } = started
  const { name, value, state } = ticket.cookie
  const { verifier, nonce } = ticket.transaction
  const authorization = await provider.authorizationUrl({ state, verifier, nonce, signup: signup?.values })
  if (authorization.is !== 'ready') {
    // Best effort: the record expires in any case.
    await transactions.forget([ticket.key]).catch(() => undefined)
    return refuse(start, returnTo, { error: authorization.code, reason: 'provider', cause: authorization.cause })
  }
  for (const old of stale) reply.setCookie(old, '', transactions.attributes(0))
  reply.setCookie(name, value, transactions.attributes())
  return reply.redirect(authorization.url.href, 303)
}

/** Logs and counts a login that was not started, and redirects the browser to the frontend. */
function refuse({ deps, request, reply, flow }: LoginStart, returnTo: string, failed: FailedStart): FastifyReply {
  const { error, outcome = error, reason, cause } = failed
  deps.metrics.logins.inc({ flow, outcome })
  const details = { flow, reason, error, client: loggedAddress(request.ip), cause }
  // The provider rejects this client's registration, which only the operator can correct.
  const emphasis = error === 'invalid_client' ? { level: 'error' as const } : {}
  auditBounded(request.log, 'login_not_started', details, `${reason}|${sourceOf(request)}`, emphasis)
  return reply.redirect(failureUrl(deps.config.frontendUrl, error, { flow, returnTo }), 303)
}
