import type { FastifyInstance } from 'fastify'
import { CLOSE } from '../close-codes.ts'
import { Handshake, type Opened } from '../handshake.ts'
import { OpenSocket } from '../open-socket.ts'
import { joinSocket } from '../prepare-sockets.ts'
import type { SocketDependencies } from '../socket-dependencies.ts'
import { SessionSocket } from './session-socket.ts'

/** `GET /ws/session`: pushes what `GET /auth/session` says (docs/reference.md, The session socket). */
export async function sessionSocketRoute(fastify: FastifyInstance, deps: SocketDependencies): Promise<void> {
  fastify.get(
    '/ws/session',
    {
      websocket: true,
      preHandler: async (request, reply) => {
        const handshake = new Handshake(request, reply, deps, { kind: 'session' })
        request.handshake = handshake
        await handshake.run(() => openSessionSocket(handshake, deps))
      },
    },
    joinSocket,
  )
}

async function openSessionSocket(handshake: Handshake, deps: SocketDependencies): Promise<Opened | undefined> {
  const { caps, sessions } = deps
  const { ip, headers } = handshake.request
  if (!caps.allowsHandshake(ip)) return handshake.end(CLOSE.rateLimited)
  if (!handshake.acquire(caps.acquireProcess())) return
  if (!handshake.acquire(caps.acquireUnreserved())) return
  const found = await sessions.read(headers.cookie)
  if (found.is === 'none') return handshake.end(CLOSE.loginRequired)
  if (found.is === 'storeDown') return handshake.end(CLOSE.storeDown)
  const { session } = found
  handshake.request.sessionTag = session.tag
  handshake.request.subjectTag = session.subjectTag
  if (!handshake.acquire(caps.acquireSessionSocket(session.key))) return
  return {
    join: (browser, slot, identity) => {
      const open = new OpenSocket(identity, slot, deps)
      slot.owner = new SessionSocket(browser, session, { sessions, onEnd: (close) => open.ended(close) })
    },
    drop: () => undefined,
  }
}
