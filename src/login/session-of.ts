import type { FastifyRequest } from 'fastify'
import type { Session, SessionLookup } from '../sessions/index.ts'

/** The session that was found for a request, which the log then names. @throws StoreUnavailable */
export function sessionOf(found: SessionLookup, request: FastifyRequest): Session | undefined {
  if (found.is === 'storeDown') throw found.cause
  if (found.is === 'none') return undefined
  request.sessionTag = found.session.tag
  request.subjectTag = found.session.subjectTag
  return found.session
}
