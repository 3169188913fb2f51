import type { FastifyInstance } from 'fastify'
import type { Controls } from '../../controls/controls.ts'
import { sharerOf } from '../../sessions/index.ts'
import { CLOSE } from '../close-codes.ts'
import { socketRoute, type Handshake, type Opened } from '../handshake.ts'
import type { SocketDependencies } from '../prepare-sockets.ts'
import { SessionSocket } from './session-socket.ts'

interface SessionSocketDependencies extends SocketDependencies {
  /** Absent where operators have no token. */
  readonly controls: Controls | undefined
}

/** `GET /ws/session`: pushes what `GET /auth/session` says (docs/reference.md, The session socket). */
export async function sessionSocketRoute(fastify: FastifyInstance, deps: SessionSocketDependencies): Promise<void> {
  socketRoute(fastify, '/ws/session', deps, {
    kind: 'session',
    open: (handshake) => openSessionSocket(handshake, deps),
  })
}

async function openSessionSocket(handshake: Handshake, deps: SessionSocketDependencies): Promise<Opened | undefined> {
  const { caps, sessions, controls, registry } = deps
  const { ip, headers } = handshake.request
  if (!handshake.acquireUnreserved()) return
  const found = await sessions.read(headers.cookie)
  if (found.is === 'none') return handshake.end(CLOSE.loginRequired)
  if (found.is === 'storeDown') return handshake.end(CLOSE.storeDown)
  const { session } = found
  handshake.request.sessionTag = session.tag
  handshake.request.subjectTag = session.subjectTag
  if (!handshake.acquire(caps.acquireSessionSocket(sharerOf(session)))) return
  // Without a subject, one user may have any number of sessions.
  if (session.record.subject === undefined && !handshake.acquire(caps.acquireSessionSocketAt(ip))) return
  return {
    join: (browser, slot, { ended }) => {
      slot.owner = new SessionSocket(browser, session, {
        sessions,
        controls,
        waiting: registry.waiting,
        onEnd: ended,
      })
    },
  }
}
