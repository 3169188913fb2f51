import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ID } from '../http/known-paths.ts'
import { requesterOf } from '../http/requester.ts'
import { Problem } from '../problem.ts'
import type { Session, SessionLookup, Subjects, SubjectsOwn } from '../sessions/index.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import { storeNow } from '../time/store-time.ts'

const SECOND = 1000

/**
 * `GET /auth/sessions` and `DELETE /auth/sessions/<tag>`: the user's sessions in all browsers, and how a page ends one of them
 * (docs/reference.md, The user's own sessions). Neither is use of the session.
 */
export function ownSessionRoutes(fastify: FastifyInstance, deps: LoginDependencies): void {
  const { guard } = deps
  guard.addPreflight(fastify, '/auth/sessions', ['GET'])
  guard.addPreflight(fastify, '/auth/sessions/:tag', ['DELETE'])

  fastify.get('/auth/sessions', async (request) => {
    const { subjects, own } = await knownSession(deps, request)
    const listing = await subjects.own.list(own)
    if (listing.is === 'limited') throw tooOften(listing.waitMs)
    const sessions = listing.sessions.map(({ tag, startedAt, lastUsedAt, isCurrent, device }) => ({
      tag,
      started_at: Math.floor(startedAt / SECOND),
      last_used_at: lastUsedAt === undefined ? undefined : Math.floor(lastUsedAt / SECOND),
      current: isCurrent,
      device,
    }))
    return { sessions, now: Math.floor(storeNow() / SECOND) }
  })

  fastify.delete<{ Params: { tag: string } }>('/auth/sessions/:tag', async (request, reply) => {
    guard.requireScript(request)
    const { subjects, own } = await knownSession(deps, request)
    const { tag } = request.params
    const by = { reason: 'logout', requester: requesterOf(request) } as const
    const outcome = ID.test(tag) ? await subjects.own.end(own, tag, by) : ({ is: 'unknown' } as const)
    switch (outcome.is) {
      case 'ended':
        return reply.code(204).send()
      case 'current':
        throw new Problem('current_session')
      case 'unknown':
        throw new Problem('not_found')
      case 'limited':
        throw tooOften(outcome.waitMs)
    }
  })
}

function tooOften(waitMs: number): Problem {
  return new Problem('rate_limited', { retryAfterSeconds: Math.ceil(waitMs / SECOND) })
}

/** The session of a request, whose subject must be known. @throws StoreUnavailable; Problem */
async function knownSession(
  { sessions, subjects, publicUrl }: LoginDependencies,
  request: FastifyRequest,
): Promise<{ readonly subjects: Subjects; readonly own: SubjectsOwn }> {
  const session = sessionOf(await sessions.read(request.headers.cookie), request)
  if (session === undefined) throw new Problem('login_required', { loginUrl: `${publicUrl}/auth/login` })
  const { id, key, record } = session
  if (subjects === undefined || record.subject === undefined) throw new Problem('subject_unknown')
  return { subjects, own: { id, key, subject: record.subject } }
}

/** The session that was found for a request, which the log then names. @throws StoreUnavailable */
export function sessionOf(found: SessionLookup, request: FastifyRequest): Session | undefined {
  if (found.is === 'storeDown') throw found.cause
  if (found.is === 'none') return undefined
  request.sessionTag = found.session.tag
  request.subjectTag = found.session.subjectTag
  return found.session
}
