import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import { Handshake, type Opened } from './handshake.ts'
import type { SocketDependencies } from './socket-dependencies.ts'
import type { SocketKind } from './socket-log.ts'

declare module 'fastify' {
  interface FastifyRequest {
    handshake: Handshake | null
  }
}

/** What differs between the sockets of this server. */
interface SocketRoute {
  readonly kind: SocketKind
  /** @throws Problem for a request that gets an HTTP response instead of a socket */
  readonly check?: (request: FastifyRequest) => void
  /** Opens what the socket needs. Resolves with nothing once the handshake is over. */
  readonly open: (handshake: Handshake) => Promise<Opened | undefined>
}

/** Adds a `GET` route of a socket. Its handshake runs before the 101, which every browser gets unless it is refused with a problem. */
export function socketRoute(
  fastify: FastifyInstance,
  path: string,
  deps: SocketDependencies,
  { kind, check, open }: SocketRoute,
): void {
  fastify.get(
    path,
    {
      websocket: true,
      preHandler: async (request, reply) => {
        check?.(request)
        const handshake = new Handshake(request, reply, deps, kind)
        request.handshake = handshake
        await handshake.run(() => open(handshake))
      },
    },
    joinSocket,
  )
}

function joinSocket(socket: WebSocket, request: FastifyRequest): void {
  request.handshake?.join(socket)
}
