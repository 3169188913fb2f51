import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Browsers do not pipeline, and balancers hardly do: more than this is somebody filling the memory. */
const MAX_UNANSWERED = 16

/**
 * Hangs up on a connection that sends request after request without waiting for answers. Node reads on until answers
 * pile up, and requests that wait for a slow upstream have none.
 */
export function limitPipelining(server: FastifyInstance): void {
  const unanswered = new WeakMap<Socket, number>()
  server.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw
    const count = (unanswered.get(socket) ?? 0) + 1
    unanswered.set(socket, count)
    if (count <= MAX_UNANSWERED) return done()
    reply.hijack()
    socket.destroy()
  })
  server.addHook('onResponse', (request, _reply, done) => {
    const { socket } = request.raw
    unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1)
    done()
  })
}
