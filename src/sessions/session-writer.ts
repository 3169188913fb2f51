import fastifySession, { type FastifySessionOptions } from '@fastify/session'
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { SessionCookie } from './session-cookie.ts'
import type { SessionRepository } from './repository.ts'
import type { SessionRecord } from './session.ts'

declare module 'fastify' {
  interface Session {
    record?: SessionRecord
  }
}

/**
 * Registers @fastify/session in the scope of `fastify`, for creating sessions only. The plugin never sees the session
 * cookie of a request: a login always creates a new session, so there is nothing to load, renew, resurrect or clear.
 */
export async function registerSessionWriter(
  fastify: FastifyInstance,
  cookie: SessionCookie,
  sessions: SessionRepository,
): Promise<void> {
  fastify.addHook('onRequest', async (request) => {
    delete request.cookies[cookie.name]
  })
  await fastify.register(fastifySession, {
    secret: cookie.signer,
    cookieName: cookie.name,
    cookie: { secure: true },
    saveUninitialized: false,
    rolling: false,
    idGenerator: () => randomBytes(32).toString('base64url'),
    store: creatingStore(sessions),
  })
}

/** The id of the session that {@link saveNewSession} will save for this request. */
export function newSessionId({ session }: FastifyRequest): string {
  return session.sessionId
}

/** Saves a new session. @returns the value for its cookie @throws StoreUnavailable */
export async function saveNewSession(request: FastifyRequest, record: SessionRecord): Promise<string> {
  const { session } = request
  session.set('record', record)
  try {
    await session.save()
  } finally {
    // Disables the plugin's onSend hook, which would save again or set the cookie itself, and which may mistake a
    // connection behind a TLS proxy for plain http.
    request.session = null as never
  }
  return session.encryptedSessionId
}

function creatingStore(sessions: SessionRepository): NonNullable<FastifySessionOptions['store']> {
  return {
    get: (_id, done) => done(null, null),
    set: (id, session, done) => {
      if (session.record === undefined) return done(new Error('a session needs a record'))
      sessions.create(id, session.record).then(() => done(), done)
    },
    // Never used: only SessionRepository.end() notifies the relays.
    destroy: (_id, done) => done(new Error('only SessionRepository.end() ends sessions')),
  }
}
