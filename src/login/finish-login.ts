import type { FastifyReply } from 'fastify'
import { audit } from '../telemetry/audit.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import { callerOf, requesterOf } from '../http/requester.ts'
import { recordOf, saveNewSession } from '../sessions/index.ts'
import { sessionKey } from '../store/keys.ts'
import type { Callback } from './failed-login.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import type { LoginCookie } from './login-cookies.ts'
import type { LoginOutcome, LoginTicket } from './login-transactions.ts'
import type { TokenGrant } from '../oauth/grant-outcome.ts'

/** A login that the provider has granted tokens for. */
interface GrantedLogin extends Callback {
  readonly ticket: LoginTicket
  readonly grant: TokenGrant
  /** Store keys of this browser's sessions that the new one replaces. */
  readonly replaced: readonly string[]
}

type Finished = Extract<LoginOutcome, { is: 'finished' }>

/**
 * Creates the session of a login and redirects the browser to the frontend.
 * @throws StoreUnavailable, after which neither the session nor its tokens exist
 */
export async function finishLogin(login: GrantedLogin): Promise<FastifyReply> {
  const { deps, request, reply, ticket, grant } = login
  const { metrics, attributionCookie } = deps
  const { flow, returnTo, attributed } = ticket.transaction
  if (grant.lifetimeGuessed) logFailure(request.log, 'the provider named no usable expires_in')
  const finished = await makeSession(login).catch((error: unknown) => {
    deps.sessions.revoke(grant)
    throw error
  })
  // The browser gets its cookie last: if anything failed before, its old session is still in place.
  setLoginCookies(deps, reply, ticket.cookie, finished)
  if (flow === 'signup') {
    metrics.signupsCompleted.inc({ attributed: String(attributed) })
    reply.setCookie(attributionCookie.name, '', attributionCookie.attributes(0))
  }
  metrics.sessionsCreated.inc()
  metrics.logins.inc({ flow, outcome: 'finished' })
  request.sessionTag = deps.sessions.tag(finished.session)
  audit(request.log, 'login', { flow, ...callerOf(request) })
  return reply.redirect(deps.config.frontendUrl + returnTo, 303)
}

/** Sets the cookie of a new session, and lets the login's cookie live as long as the session. */
export function setLoginCookies(
  { sessions: { cookie }, transactions }: LoginDependencies,
  reply: FastifyReply,
  login: LoginCookie,
  { cookieValue, cookieEndsAt, endsAt }: Finished,
): void {
  const now = Date.now()
  reply.setCookie(cookie.name, cookieValue, cookie.attributes(cookieEndsAt - now))
  reply.setCookie(login.name, login.value, transactions.attributes(endsAt - now))
}

async function makeSession({ deps, request, ticket, grant, replaced }: GrantedLogin): Promise<Finished> {
  const { sessions, transactions } = deps
  const { returnTo } = ticket.transaction
  const cookieEndsAt = Date.now() + deps.sessionMaxMs
  const record = recordOf(grant, {
    endsAt: cookieEndsAt,
    scope: deps.config.scope,
    loginKey: ticket.key,
  })
  const { id, cookieValue } = await saveNewSession(request, record)
  const session = sessionKey(id)
  try {
    const by = { requester: requesterOf(request) }
    await Promise.all([...new Set(replaced)].map((old) => sessions.end(old, 'replaced', by)))
  } catch (error) {
    await sessions.end(session, 'replaced', { requester: requesterOf(request) }).catch(() => undefined)
    throw error
  }
  const { endsAt } = record
  const finished: Finished = { is: 'finished', returnTo, session, cookieValue, endsAt, cookieEndsAt }
  // The login has succeeded, whether or not its outcome can be saved; only repeated callbacks need it.
  await transactions
    .settle(ticket, finished)
    .catch((lost: unknown) => logFailure(request.log, 'the outcome of a login was not saved', {}, lost))
  return finished
}
