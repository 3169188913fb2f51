import type { FastifyInstance } from 'fastify'
import { sessionKey } from '../store/keys.ts'
import type { AuthParts } from './auth-parts.ts'

const SECOND = 1000

/** `GET /auth/session` and `POST /auth/logout`: what a page asks about its session, and how it ends it. */
export async function sessionRoutes(fastify: FastifyInstance, parts: AuthParts): Promise<void> {
  const { guard, cookie, reader, sessions, transactions, tokens } = parts
  guard.addPreflight(fastify, '/auth/session', ['GET'])
  guard.addPreflight(fastify, '/auth/logout', ['POST'])
  fastify.addHook('onRequest', async (request, reply) => guard.allowReading(request, reply))

  fastify.get('/auth/session', async (request) => {
    const found = await reader.read(request.headers.cookie)
    const now = Math.floor(Date.now() / SECOND)
    switch (found.is) {
      case 'storeDown':
        throw found.cause
      case 'none':
        return { authenticated: false, now }
      case 'live': {
        const { record, idleEndsAt } = found.session
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
    const { cookie: cookies } = request.headers
    const ids = cookie.ids(cookies)
    const keys = ids.map(sessionKey)
    for (const id of ids) {
      const session = await sessions.load(id)
      // Ended even where it cannot be read here; the store's outage is a 503, never a false 204.
      await sessions.end(sessionKey(id), 'logout')
      if (session !== undefined) tokens.revoke(session.record)
    }
    for (const name of await transactions.forget(cookies, keys)) {
      reply.setCookie(name, '', transactions.attributes(0))
    }
    if (ids.length > 0) reply.setCookie(cookie.name, '', cookie.attributes())
    return reply.code(204).send()
  })
}
