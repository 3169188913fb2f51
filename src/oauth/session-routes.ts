import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sessionKey } from '../store/keys.ts'
import type { AuthParts } from './auth-parts.ts'

const SECOND = 1000

/** `GET /auth/session` and `POST /auth/logout`: what a page asks about its session, and how it ends it. */
export async function sessionRoutes(fastify: FastifyInstance, parts: AuthParts): Promise<void> {
  const { guard, reader } = parts
  guard.addPreflight(fastify, '/auth/session', ['GET'])
  guard.addPreflight(fastify, '/auth/logout', ['POST'])
  // Logging out takes no body, and whatever a page sends as one must not keep its user logged in.
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume()
    done(null)
  })

  fastify.get('/auth/session', async (request) => {
    const found = await reader.read(request.headers.cookie)
    const now = Math.floor(Date.now() / SECOND)
    switch (found.is) {
      case 'storeDown':
        throw found.cause
      case 'none':
        return { authenticated: false, now }
      case 'live': {
        const { record, idleEndsAt, tag } = found.session
        request.sessionTag = tag
        return {
          authenticated: true,
          now,
          expires_at: Math.floor(record.endsAt / SECOND),
          idle_expires_at: Math.floor(Math.min(idleEndsAt, record.endsAt) / SECOND),
          scope: record.scope,
        }
      }
    }
  })

  fastify.post('/auth/logout', async (request, reply) => {
    guard.requireScript(request)
    await logOut(parts, request, reply)
    return reply.code(204).send()
  })
}

/**
 * Ends every session of this browser, also those whose cookie a later login has overwritten, and forgets its logins
 * that are over. @throws StoreUnavailable, so that an outage is a 503 and never a false 204
 */
async function logOut(parts: AuthParts, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { cookie, transactions, sessions } = parts
  const { cookie: cookies } = request.headers
  const ids = cookie.ids(cookies)
  const logins = await transactions.settled(cookies)
  for (const id of ids) await endSession(parts, id)
  for (const { session } of logins) if (session !== undefined) await sessions.end(session, 'logout')
  await transactions.forget(logins)
  for (const { cookieName } of logins) reply.setCookie(cookieName, '', transactions.attributes(0))
  if (ids.length > 0) reply.setCookie(cookie.name, '', cookie.attributes())
}

/** Ends a session, and revokes the very tokens it held in the end: a refresh may be changing them right now. */
async function endSession({ sessions, tokens, transactions }: AuthParts, id: string): Promise<void> {
  let session = await sessions.load(id)
  while (session !== undefined && !(await sessions.endAsRead(session, 'logout'))) {
    session = await sessions.load(id)
  }
  // Ended even where it cannot be read here.
  if (session === undefined) return void (await sessions.end(sessionKey(id), 'logout'))
  tokens.revoke(session.record)
  await transactions.forget([{ key: session.record.loginKey }])
}
