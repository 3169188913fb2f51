import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { callerOf, requesterOf } from '../http/requester.ts'
import { Problem } from '../problem.ts'
import type { RawQuery } from '../http/server.ts'
import { sessionKey } from '../store/keys.ts'
import { unlessAway } from '../store/store.ts'
import { audit } from '../telemetry/audit/audit.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import type { NamedSession } from '../sessions/index.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import { ownSessionRoutes, sessionOf } from './own-session-routes.ts'
import { START_WINDOW_SECONDS } from '../limits/start-limit.ts'

/**
 * `GET` and `POST /auth/session`, `POST /auth/logout` and `/auth/sessions`: what pages ask about their session and do with it.
 */
export async function sessionRoutes(fastify: FastifyInstance, deps: LoginDependencies): Promise<void> {
  const { guard, sessions, subjects, controls, provider, publicUrl } = deps
  guard.addPreflight(fastify, '/auth/session', ['GET', 'POST'])
  guard.addPreflight(fastify, '/auth/logout', ['POST'])
  // A logout needs no body. Without this, a body that cannot be parsed would keep the user logged in: Fastify refuses a request whose
  // Content-Type it cannot read, such as `json`, whatever the parsers accept.
  fastify.addHook('onRequest', async ({ raw }) => void delete raw.headers['content-type'])
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume()
    done(null)
  })

  fastify.get<{ Querystring: RawQuery }>('/auth/session', async (request) => {
    const asksForOthers = asks(request, 'others')
    const session = sessionOf(await sessions.read(request.headers.cookie), request)
    const state = { ...sessions.state(session), ...controls?.stateFor(session) }
    if (subjects === undefined || session?.record.subject === undefined || !asksForOthers) return state
    const others = await unlessAway(subjects.countOthers(session.record.subject, session.key))
    return { ...state, ...(others !== undefined && { other_sessions: others }) }
  })

  fastify.post('/auth/session', async (request, reply) => {
    guard.requireScript(request)
    const session = sessionOf(await sessions.extend(request.headers.cookie), request)
    if (session === undefined) {
      throw new Problem('login_required', { loginUrl: `${publicUrl}/auth/login` })
    }
    return reply.code(204).send()
  })

  fastify.post<{ Querystring: RawQuery }>('/auth/logout', async (request, reply) => {
    guard.requireScript(request)
    const isEverywhere = asks(request, 'everywhere')
    const atProvider = asks(request, 'provider')
    // The other sessions first: after a failure this one is left, with which the page can try again.
    const knowsSubject = isEverywhere && (await endOthers(deps, request))
    const idToken = await logOut(deps, request, reply)
    if (isEverywhere && !knowsSubject) throw new Problem('subject_unknown')
    const logoutUrl = atProvider ? provider.openId?.endSessionUrl(idToken) : undefined
    return logoutUrl === undefined ? reply.code(204).send() : { logout_url: logoutUrl.href }
  })

  ownSessionRoutes(fastify, deps)
}

/** Whether a query asks for something. @throws Problem where it names it with any other value than true */
function asks({ query }: FastifyRequest<{ Querystring: RawQuery }>, name: string): boolean {
  const values = new URLSearchParams(query.text).getAll(name)
  if (values.length === 0) return false
  if (values.length === 1 && values[0] === 'true') return true
  throw new Problem('validation_failed', { errors: [{ field: name, message: 'must be true, once, or absent' }] })
}

/**
 * Ends all sessions of the subject of this browser's session but that one.
 * @returns whether the subject is known
 * @throws StoreUnavailable
 */
async function endOthers({ sessions, subjects }: LoginDependencies, request: FastifyRequest): Promise<boolean> {
  const { cookie } = request.headers
  const session = sessionOf(await sessions.read(cookie), request)
  // It may have ended although the last request failed.
  const endedId = session === undefined && sessions.cookie.verify(sessions.cookie.value(cookie) ?? '')
  const subject = endedId ? await subjects?.ofEnded(endedId) : session?.record.subject
  if (subjects === undefined || subject === undefined) return false
  const by = { reason: 'logout', requester: requesterOf(request) } as const
  // Its end as one of many would leave its tokens, since only its id opens its record.
  const own = session ?? (endedId ? { key: sessionKey(endedId) } : undefined)
  const ended = await subjects.endAll(subject, by, own).catch((cause: unknown) => {
    const failed = { level: 'warn', message: 'a logout everywhere has failed' } as const
    audit(request.log, 'logout_everywhere', { outcome: 'incomplete', cause, ...callerOf(request) }, failed)
    throw cause
  })
  audit(request.log, 'logout_everywhere', { ended, ...callerOf(request) })
  return true
}

/**
 * Ends every session of this browser, including sessions whose cookie a later login has overwritten, and removes its
 * finished logins and the cookies of its failed ones.
 * @returns the ID token of the session, for a logout at the provider
 * @throws StoreUnavailable, so that an outage is a 503 and never a false 204; Problem rate_limited, after the sessions of
 * this browser's logins have ended
 */
async function logOut(
  deps: LoginDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<string | undefined> {
  const { transactions, sessions } = deps
  const { cookie } = sessions
  const { cookie: cookies } = request.headers
  const named = cookie.named(cookies)
  const requester = requesterOf(request)
  // For the log, even if the session cannot be ended. An id without a valid signature could be that of another user.
  const authentic = named.find(({ isAuthentic }) => isAuthentic)
  if (authentic !== undefined) request.sessionTag = sessions.tag(sessionKey(authentic.id))
  // A cookie without a valid signature may be made up. It is always the only one.
  const mayBeMadeUp = named.length > 0 && authentic === undefined
  const isOverLimit = mayBeMadeUp && !(await deps.startLimit.allows(request.ip))
  const meant = isOverLimit ? [] : named
  // By id, because a login cookie and the session cookie usually name the same session.
  const toEnd = new Map(meant.map((each) => [each.id, each]))
  const isToEnd = (key: string): boolean => [...toEnd.keys()].some((id) => sessionKey(id) === key)
  const logins = await transactions.settled(cookies)
  const ends: Promise<unknown>[] = []
  for (const { session, cookieValue = '' } of logins) {
    if (session === undefined) continue
    const id = cookie.verify(cookieValue)
    if (id !== undefined) toEnd.set(id, { id, isAuthentic: true })
    // Its cookie was signed with a secret that has been removed since, or is not known; the session ends all the same.
    else if (!isToEnd(session)) ends.push(sessions.end(session, 'logout', { requester }))
  }
  const end = ({ id, isAuthentic }: NamedSession) => sessions.endById(id, 'logout', isAuthentic, requester)
  // The page's own session ends last: if anything fails before, it still lives, and the page can try again. Until all have ended, their
  // logins stay: a later login or logout of this browser may find them by nothing else. The others end at once: each waits for replicas.
  const [own, ...others] = toEnd.values()
  const [otherRecords] = await Promise.all([Promise.all(others.map(end)), ...ends])
  // Undefined if the session was gone already or could not be decrypted; it has ended in either case.
  const record = own && (await end(own))
  const loginKeys = [...logins.map(({ key }) => key), ...[...otherRecords, record].map((each) => each?.loginKey)]
  await transactions
    .forget([...new Set(loginKeys.filter((key) => key !== undefined))])
    // Those that are left expire by themselves.
    .catch((cause: unknown) => logFailure(request.log, 'a finished login was not removed', {}, cause))
  for (const { cookieName } of logins) {
    if (cookieName !== undefined) reply.setCookie(cookieName, '', transactions.attributes(0))
  }
  if (meant.length > 0) reply.setCookie(cookie.name, '', cookie.attributes(0))
  if (isOverLimit) throw new Problem('rate_limited', { retryAfterSeconds: START_WINDOW_SECONDS })
  return record?.oidc?.idToken
}
