import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import type { RawQuery } from '../http/server.ts'
import { StoreUnavailable } from '../store/store.ts'
import { failureUrl, type AuthError, type Flow } from './auth-error.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import { finishLogin, setLoginCookies } from './finish-login.ts'
import type { Consumption, LoginTicket } from './login-transactions.ts'
import { callbackError } from '../oauth/grant-outcome.ts'

/** Longest text of the provider's that is logged. */
const MAX_DESCRIPTION = 500

/** One callback on its way through. */
interface Callback {
  readonly deps: LoginDependencies
  readonly request: FastifyRequest<{ Querystring: RawQuery }>
  readonly reply: FastifyReply
  readonly query: URLSearchParams
}

/** Why a login failed. `known`: what is known of its transaction; `ticket`: it was this callback's to carry on. */
interface Failure {
  readonly error: AuthError
  /** What it counts as, where that is not its code. */
  readonly outcome?: 'rate_limited'
  readonly cause?: unknown
  /** Nobody expected it: it is ours. */
  readonly isFault?: boolean
  readonly known?: { readonly flow: Flow; readonly returnTo: string }
  readonly ticket?: LoginTicket
}

/** `GET /auth/callback`: finishes a login, and always goes back to the frontend. */
export async function callbackRoute(fastify: FastifyInstance, deps: LoginDependencies): Promise<void> {
  fastify.get<{ Querystring: RawQuery }>('/auth/callback', async (request, reply) => {
    deps.guard.requireNavigation(request)
    const callback = { deps, request, reply, query: new URLSearchParams(request.query.text) }
    try {
      return await answer(callback)
    } catch (cause) {
      return fail(callback, thrown(cause))
    }
  })
}

async function answer(callback: Callback): Promise<FastifyReply> {
  const { deps, request, query } = callback
  const [state, ...moreStates] = query.getAll('state')
  const [error, ...moreErrors] = query.getAll('error')
  if (state === undefined && error !== undefined) {
    return fail(callback, { error: moreErrors.length > 0 ? 'login_failed' : callbackError(error) })
  }
  if (state === undefined || moreStates.length > 0) return fail(callback, { error: 'state_mismatch' })

  const { cookie: cookies } = request.headers
  // Nothing is looked up for a browser that has no part in this login.
  if (!deps.transactions.knows(cookies, state)) return fail(callback, { error: 'state_mismatch' })
  if (deps.transactions.hasUnsigned(cookies) && !(await deps.startLimit.allows(request.ip))) {
    return fail(callback, { error: 'try_later', outcome: 'rate_limited' })
  }
  // Read before the login goes on: of two that finish at the same moment, neither may end the other's session.
  const earlier = await deps.transactions.settled(cookies)
  const consumed = await deps.transactions.consume(cookies, state)
  switch (consumed.is) {
    case 'unknown':
      return fail(callback, { error: 'state_mismatch' })
    case 'abandoned':
      return fail(callback, { error: 'login_failed', known: consumed })
    case 'replayed':
      return replay(callback, consumed)
    case 'fresh': {
      const { ticket } = consumed
      const replaced = [...ticket.transaction.previous, ...earlier.flatMap(({ session }) => session ?? [])]
      return exchange(callback, ticket, replaced)
    }
  }
}

async function exchange(
  callback: Callback,
  ticket: LoginTicket,
  replaced: readonly string[],
): Promise<FastifyReply> {
  const { deps, request } = callback
  const { transaction, cookie } = ticket
  try {
    const outcome = await deps.provider.exchange(request.query.text, cookie.state, transaction.verifier)
    switch (outcome.is) {
      case 'unavailable':
      case 'refused':
        return await fail(callback, { error: outcome.code, cause: outcome.cause, ticket })
      case 'granted':
        return await finishLogin({ ...callback, ticket, grant: outcome.grant, replaced })
    }
  } catch (cause) {
    return fail(callback, { ...thrown(cause), ticket })
  }
}

/** A callback that comes again: by reload, back button or restored tab. It exchanges nothing and changes nothing. */
function replay(
  { deps, reply }: Callback,
  { outcome, waited, cookie }: Extract<Consumption, { is: 'replayed' }>,
): FastifyReply {
  const { frontendUrl } = deps.config
  if (outcome.is === 'failed') return reply.redirect(failureUrl(frontendUrl, outcome.error, outcome), 303)
  // A reload in the middle of the exchange: the browser no longer listens to the first answer, so this one has to
  // bring the cookies.
  if (waited) setLoginCookies(deps, reply, cookie, outcome)
  return reply.redirect(frontendUrl + outcome.returnTo, 303)
}

function thrown(cause: unknown): Failure {
  return cause instanceof StoreUnavailable
    ? { error: 'try_later', cause }
    : { error: 'login_failed', cause, isFault: true }
}

async function fail(callback: Callback, failure: Failure): Promise<FastifyReply> {
  const { deps, request, reply, query } = callback
  const { error, outcome = error, cause, isFault = false, ticket, known = ticket?.transaction } = failure
  const what = { audit: 'login_failed', error, flow: known?.flow, description: descriptionOf(query) }
  const details = { ...what, client: request.ip }
  if (isFault) request.log.error({ ...details, err: cause }, 'login failed')
  // Told by the token endpoint, which alone is believed when it says so: the operator must act.
  else request.log[error === 'invalid_client' ? 'error' : 'warn']({ ...details, cause }, 'login failed')
  if (isOutOfDescriptors(cause)) logFailure(request.log, 'login failed', {}, cause)
  deps.metrics.logins.inc({ flow: known?.flow ?? 'unknown', outcome })
  if (ticket !== undefined) {
    const { flow, returnTo } = ticket.transaction
    // Best effort: without it a callback that comes again is told that nothing became of the first.
    await deps.transactions
      .settle(ticket, { is: 'failed', error, flow, returnTo })
      .catch((lost: unknown) =>
        logFailure(request.log, 'the outcome of a login could not be noted', {}, lost),
      )
  }
  return reply.redirect(failureUrl(deps.config.frontendUrl, error, known), 303)
}

/** What the provider says about a failure, without what a log must not hold. */
function descriptionOf(query: URLSearchParams): string | undefined {
  const description = query.get('error_description')?.slice(0, MAX_DESCRIPTION)
  const secrets = [...query.getAll('code'), ...query.getAll('state')].filter((value) => value.length >= 8)
  return secrets.reduce((text, secret) => text?.replaceAll(secret, '…'), description)
}
