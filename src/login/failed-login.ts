import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RawQuery } from '../http/server.ts'
import { StoreUnavailable } from '../store/store.ts'
import { loggedAddress, sourceOf } from '../http/requester.ts'
import { audit, auditBounded } from '../telemetry/audit/audit.ts'
import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import { ProviderRefusal } from '../oauth/grant-outcome.ts'
import { failureUrl, type AuthError, type Flow } from './return-to.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import type { LoginTicket } from './login-transactions.ts'

/** Longest error_description that is logged. */
const MAX_DESCRIPTION = 500

/** One callback request. */
export interface Callback {
  readonly deps: LoginDependencies
  readonly request: FastifyRequest<{ Querystring: RawQuery }>
  readonly reply: FastifyReply
  readonly query: URLSearchParams
  /** Tells how long ago this callback began. */
  readonly ageMs: () => number
}

/** Why a login failed. */
interface LoginFailure {
  readonly error: AuthError
  /** The metric label, where it is not the error. */
  readonly outcome?: 'rate_limited'
  /** `ended`: the session was ended while this login was finishing. */
  readonly reason?: 'ended'
  readonly cause?: unknown
  /** An unexpected exception, hence a fault of this server. */
  readonly isFault?: boolean
  /** Flow and return path of the login, if they are known. */
  readonly known?: { readonly flow: Flow; readonly returnTo: string }
  /** Present when this callback had the right to finish the login. */
  readonly ticket?: LoginTicket
}

/** The failure that an exception amounts to. */
export function failureOf(cause: unknown): LoginFailure {
  return cause instanceof StoreUnavailable
    ? { error: 'try_later', cause }
    : { error: 'login_failed', cause, isFault: true }
}

/** Logs and counts a failed login, keeps its outcome for repeated callbacks, and redirects the browser to the frontend. */
export async function failLogin(callback: Callback, failure: LoginFailure): Promise<FastifyReply> {
  const { deps, request, reply, query } = callback
  const { error, outcome = error, reason, cause, isFault = false, ticket, known = ticket?.transaction } = failure
  const details = {
    error,
    reason,
    flow: known?.flow,
    description: descriptionOf(query) ?? (cause instanceof ProviderRefusal ? cause.description : undefined),
    client: loggedAddress(request.ip),
  }
  // Only the token endpoint is believed when it says invalid_client, and then the operator must act.
  const level = isFault || error === 'invalid_client' ? 'error' : 'warn'
  const line = { ...details, ...(isFault ? { err: cause } : { cause }) }
  // A stranger can open the address of the callback as often as they like.
  if (known === undefined && level === 'warn') {
    auditBounded(request.log, 'login_failed', line, `${error}|${sourceOf(request)}`)
  } else audit(request.log, 'login_failed', line, { level })
  if (isOutOfDescriptors(cause)) logFailure(request.log, 'login failed', {}, cause)
  deps.metrics.logins.inc({ flow: known?.flow ?? 'unknown', outcome })
  if (ticket !== undefined) {
    const { flow, returnTo, previous } = ticket.transaction
    // Best effort: without it, a repeated callback reports that the first one was abandoned.
    await deps.transactions
      .settle(ticket, { is: 'failed', error, flow, returnTo, previous })
      .catch((lost: unknown) => logFailure(request.log, 'the outcome of a login was not saved', {}, lost))
  }
  return reply.redirect(failureUrl(deps.config.frontendUrl, error, known), 303)
}

/** The provider's description of a failure, with the code and the state blacked out. */
function descriptionOf(query: URLSearchParams): string | undefined {
  const description = query.get('error_description') ?? undefined
  const secrets = [...query.getAll('code'), ...query.getAll('state')].filter((value) => value.length >= 8)
  // Shortened last, or the beginning of a secret could be left at the end.
  return secrets.reduce((text, secret) => text?.replaceAll(secret, '…'), description)?.slice(0, MAX_DESCRIPTION)
}
