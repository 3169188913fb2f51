import type { FastifyReply, FastifyRequest } from 'fastify'
import { logFailure } from '../telemetry/failure-log.ts'
import { requesterOf } from '../http/requester.ts'
import { recordOf, saveNewSession } from '../sessions/index.ts'
import { sessionKey } from '../store/keys.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import type { LoginCookie } from './login-cookies.ts'
import type { LoginOutcome, LoginTicket } from './login-transactions.ts'
import type { TokenGrant } from '../oauth/grant-outcome.ts'

/** A login whose tokens have come. */
interface GrantedLogin {
  readonly deps: LoginDependencies
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly ticket: LoginTicket
  readonly grant: TokenGrant
  /** Store keys of the sessions of this browser that the new one takes the place of. */
  readonly replaced: readonly string[]
}

type Finished = Extract<LoginOutcome, { is: 'finished' }>

/**
 * Makes the session of a login and sends the browser back.
 * @throws StoreUnavailable, and then neither the session nor its tokens are left
 */
export async function finishLogin(login: GrantedLogin): Promise<FastifyReply> {
  const { deps, request, reply, ticket, grant } = login
  const { metrics, attributionCookie } = deps
  const { flow, returnTo, attributed } = ticket.transaction
  if (grant.lifetimeGuessed) logFailure(request.log, 'the provider named no usable expires_in')
  const finished = await makeSession(login).catch((error: unknown) => {
    // Nobody will ever use these tokens.
    deps.sessions.revoke(grant)
    throw error
  })
  // The browser learns of the session last: whatever failed before this left its old one in place.
  setLoginCookies(deps, reply, ticket.cookie, finished)
  if (flow === 'signup') {
    metrics.signupsCompleted.inc({ attributed: String(attributed) })
    reply.setCookie(attributionCookie.name, '', attributionCookie.attributes(0))
  }
  metrics.sessionsCreated.inc()
  metrics.logins.inc({ flow, outcome: 'finished' })
  const session = deps.sessions.tag(finished.session)
  request.sessionTag = session
  request.log.info({ audit: 'login', flow, session, client: request.ip }, 'logged in')
  return reply.redirect(deps.config.frontendUrl + returnTo, 303)
}

/** Sets the cookie of a new session, and lets that of its login live as long. */
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
    const by = requesterOf(request)
    await Promise.all([...new Set(replaced)].map((old) => sessions.end(old, 'replaced', by)))
  } catch (error) {
    await sessions.end(session, 'replaced', requesterOf(request)).catch(() => undefined)
    throw error
  }
  const { endsAt } = record
  const finished: Finished = { is: 'finished', returnTo, session, cookieValue, endsAt, cookieEndsAt }
  // From here on the login has succeeded: without the mark, only a callback that comes again would not know it.
  await transactions
    .settle(ticket, finished)
    .catch((lost: unknown) => logFailure(request.log, 'the outcome of a login could not be noted', {}, lost))
  return finished
}
