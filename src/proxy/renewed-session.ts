import { requesterOf } from '../http/requester.ts'
import type { Session } from '../sessions/index.ts'
import { authorizedSession } from './authorized-session.ts'
import type { Call, CallDependencies } from './call.ts'

/**
 * The session with another token, after upstream refused that of a call.
 * @param mayRenew false if a renewed token was refused too
 * @throws Problem, StoreUnavailable
 */
export async function renewedSession(
  { sessions, http }: CallDependencies,
  { request }: Call,
  session: Session,
  mayRenew: boolean,
): Promise<Session> {
  return authorizedSession(await sessions.renewAfterRefusal(session, mayRenew, requesterOf(request)), request, http)
}
