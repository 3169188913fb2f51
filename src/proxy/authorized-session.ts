import type { FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import { requesterOf } from '../http/requester.ts'
import { Problem } from '../problem.ts'
import type { Authorization, Session, Sessions, TokenNeed } from '../sessions/index.ts'

interface AuthorizationDependencies {
  readonly http: Pick<Config['http'], 'publicUrl'>
  readonly sessions: Sessions
}

/**
 * The session of a request that had one when it began.
 * @throws Problem session_expired if it has ended since, StoreUnavailable
 */
export async function liveSession(
  deps: AuthorizationDependencies,
  request: FastifyRequest,
  need: TokenNeed,
): Promise<Session> {
  const found = await deps.sessions.authorize(request.headers.cookie, need, request)
  // The cookie of a session that is gone looks like any other that names none.
  const later = found.is === 'anonymous' ? ({ is: 'ended', tag: request.sessionTag } as const) : found
  return authorizedSession(later, request, deps.http)
}

/**
 * The session with another token, after upstream refused the token of a call.
 * @param mayRenew false if a renewed token was refused too
 * @throws Problem, StoreUnavailable
 */
export async function renewedSession(
  { sessions, http }: AuthorizationDependencies,
  request: FastifyRequest,
  session: Session,
  mayRenew: boolean,
): Promise<Session> {
  return authorizedSession(await sessions.renewAfterRefusal(session, mayRenew, requesterOf(request)), request, http)
}

/** The session of an authorization; a REST caller gets anything else as a problem. @throws Problem, StoreUnavailable */
export function authorizedSession(
  found: Authorization,
  request: FastifyRequest,
  { publicUrl }: AuthorizationDependencies['http'],
): Session {
  const loginUrl = `${publicUrl}/auth/login`
  switch (found.is) {
    case 'authorized':
      request.sessionTag = found.session.tag
      request.subjectTag = found.session.subjectTag
      return found.session
    case 'anonymous':
      throw new Problem('login_required', { loginUrl })
    case 'ended':
      request.sessionTag = found.tag
      throw new Problem('session_expired', { loginUrl })
    case 'providerDown':
      request.sessionTag = found.tag
      throw new Problem('provider_unavailable', {
        cause: found.cause,
        retryAfterSeconds: Math.ceil(found.retryAfterMs / 1000),
      })
    case 'justRenewed':
      request.sessionTag = found.tag
      throw new Problem('credential_renewed', {
        detail: 'The trading service refused the token, which was renewed a moment ago. Nothing was executed.',
        retryAfterSeconds: Math.ceil(found.retryAfterMs / 1000),
      })
    case 'storeDown':
      throw found.cause
  }
}
