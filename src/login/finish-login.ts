import type { FastifyBaseLogger, FastifyReply } from 'fastify'
import { audit } from '../telemetry/audit/audit.ts'
import { BoundedLines } from '../telemetry/bounded-lines.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import { callerOf, requesterOf } from '../http/requester.ts'
import { newSessionId, recordOf, saveNewSession } from '../sessions/index.ts'
import { sessionKey } from '../store/keys.ts'
import { failLogin, type Callback } from './failed-login.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import { finishedValue, type LoginCookie } from './login-cookies.ts'
import type { LoginOutcome } from './login-record.ts'
import type { LoginTicket } from './login-transactions.ts'
import type { TokenGrant } from '../oauth/grant-outcome.ts'
import { nameOf } from '../oauth/login-identity.ts'
import { storeNow } from '../time/store-time.ts'

/** Every login may be granted the same. One line an hour stands for all. */
const narrowScopes = new BoundedLines({ atOnce: 1, everyMs: 3_600_000 })
const NARROW_SCOPE = 'the provider granted less than OAUTH_SCOPE, so some calls may be refused'

/** This browser's sessions that a new one replaces: their ids by their store keys, undefined where not known. */
export type ReplacedSessions = ReadonlyMap<string, string | undefined>

/** A login that the provider has granted tokens for. */
interface GrantedLogin extends Callback {
  readonly ticket: LoginTicket
  readonly grant: TokenGrant
  readonly replaced: ReplacedSessions
}

/** The outcome of a login that has made a session. */
export type FinishedLogin = Extract<LoginOutcome, { is: 'finished' }>

/**
 * Creates the session of a login and redirects the browser to the frontend.
 * @throws StoreUnavailable, after which neither the session nor its tokens exist
 */
export async function finishLogin(login: GrantedLogin): Promise<FastifyReply> {
  const { deps, request, reply, ticket, grant } = login
  const { metrics } = deps
  const { flow, returnTo, attributed } = ticket.transaction
  if (grant.lifetimeGuessed) logFailure(request.log, 'the provider named no usable expires_in')
  warnOfNarrowScope(request.log, deps.config.scope, grant)
  const { identity } = grant
  const subject =
    identity === undefined
      ? await deps.subjects?.identity?.ask(grant.accessToken, request)
      : nameOf(identity.iss, identity.sub)
  const finished = await makeSession(login, subject).catch((error: unknown) => {
    void deps.sessions.revoke(grant)
    throw error
  })
  if (finished.is === 'ended') {
    void deps.sessions.revoke(grant)
    return failLogin(login, { error: 'login_failed', reason: 'ended', ticket })
  }
  // The browser gets its cookie last: if anything failed before, its old session is still in place.
  setLoginCookies(deps, reply, ticket.cookie, finished)
  if (flow === 'signup') metrics.signupsCompleted.inc({ attributed: String(attributed) })
  metrics.sessionsCreated.inc()
  metrics.logins.inc({ flow, outcome: 'finished' })
  request.sessionTag = deps.sessions.tag(finished.session)
  request.subjectTag = deps.sessions.subjectTag(subject)
  audit(request.log, 'login', { flow, ...callerOf(request) })
  return reply.redirect(deps.config.frontendUrl + returnTo, 303)
}

/**
 * Sets the cookie of a new session, and lets the login's cookie live as long as the session. A completed sign-up deletes the
 * remembered partner link.
 */
export function setLoginCookies(
  { sessions: { cookie }, transactions, attributionCookie }: LoginDependencies,
  reply: FastifyReply,
  login: LoginCookie,
  { flow, cookieValue, cookieEndsAt, endsAt }: FinishedLogin,
): void {
  const now = storeNow()
  reply.setCookie(cookie.name, cookieValue, cookie.attributes(cookieEndsAt - now))
  reply.setCookie(login.name, finishedValue(login.value), transactions.attributes(endsAt - now))
  if (flow === 'signup') reply.setCookie(attributionCookie.name, '', attributionCookie.attributes(0))
}

/**
 * Creates the session. Where it has a subject, it is entered into the index of its subject first, so that a logout
 * of all sessions of the subject at this moment either finds it there or is noticed here.
 * @throws StoreUnavailable, after which the session does not exist
 */
async function makeSession(
  login: GrantedLogin,
  subject: string | undefined,
): Promise<FinishedLogin | { readonly is: 'ended' }> {
  const { deps, request, ticket, grant, replaced, ageMs } = login
  const { sessions, subjects, transactions } = deps
  const { flow, returnTo } = ticket.transaction
  const cookieEndsAt = storeNow() + deps.sessionMaxMs
  const record = recordOf(grant, {
    endsAt: cookieEndsAt,
    scope: deps.config.scope,
    loginKey: ticket.key,
    ...(subject !== undefined && { subject }),
    ...(grant.identity !== undefined && { oidc: grant.identity }),
  })
  const { endsAt } = record
  const id = newSessionId(request)
  const session = sessionKey(id)
  const requester = requesterOf(request)
  const { client } = requester
  const { identity } = grant
  const userAgent = request.headers['user-agent']
  const enlisted =
    subject === undefined ? undefined : await subjects?.enlist({ subject, id, endsAt, client, userAgent, identity })
  const by = { requester, subjectTag: sessions.subjectTag(subject) }
  let finished: FinishedLogin
  try {
    const cookieValue = await saveNewSession(request, record)
    if (enlisted !== undefined && !(await subjects?.mayLive(enlisted, ageMs))) {
      await sessions.end(session, 'revoked', by)
      return { is: 'ended' }
    }
    finished = { is: 'finished', flow, returnTo, session, cookieValue, endsAt, cookieEndsAt }
    // Before any other session ends: without the outcome, the next login and a logout might not find this session.
    await transactions.settle(ticket, finished)
    await Promise.all([...replaced].map(([old, id]) => sessions.endReplaced(old, { requester, id })))
  } catch (error) {
    // An entry that stayed would count as a session for a minute, and could cost another one its life.
    await Promise.all([sessions.discard(session, by), enlisted && subjects?.withdraw(enlisted)])
    throw error
  }
  // The sessions that this one replaces are gone, so it must not fail any more. The next login makes room.
  if (enlisted !== undefined) {
    await subjects
      ?.makeRoom(enlisted, requester)
      .catch((cause: unknown) => logFailure(request.log, 'sessions beyond the limit could not be ended', {}, cause))
  }
  return finished
}

/** Warns if a login was granted less than it asked for (RFC 6749 §3.3). @param asked OAUTH_SCOPE */
function warnOfNarrowScope(log: FastifyBaseLogger, asked: string, { scope, refreshToken }: TokenGrant): void {
  // Without a scope, the granted one is the requested one.
  const granted = scope?.split(' ')
  const missing = asked.split(' ').filter((each) => granted?.includes(each) === false)
  // Some providers do not list it, and yet grant what it stands for.
  const lost = refreshToken === undefined ? missing : missing.filter((each) => each !== 'offline_access')
  if (lost.length === 0) return
  narrowScopes.add(log, { id: lost.join(' '), write: (count) => log.warn({ missing: lost, count }, NARROW_SCOPE) })
}
