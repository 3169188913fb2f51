import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

const SWEEP_MS = 50
/** The first request of a connection that was opened just before the server closed may still be on its way. */
const SILENCE_MS = 1000

/**
 * Closes a server that may be busy. For `waitMs` it serves on, until the balancer has noticed that it is not ready; then it
 * refuses new work and finishes what is in progress.
 */
export async function closeServer(server: FastifyInstance, waitMs: number): Promise<void> {
  if (waitMs > 0) {
    // Every connection ends with its next response, so that few are left open when the time is up.
    server.server.prependListener('request', (_request, response) => void (response.shouldKeepAlive = false))
    await delay(waitMs)
  }
  await server.close()
}

/**
 * Sees to it that no connection without a request delays the end of a server for more than a second: one that was busy
 * when the server closed, and stays open after its response, or one that has sent nothing yet, which Node takes for busy.
 * Browsers and balancers open such connections ahead.
 */
export function closeUnusedConnections(server: FastifyInstance): void {
  const connections = new Set<Socket>()
  server.server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  const closeSilent = (): void => {
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
  }
  const timers: NodeJS.Timeout[] = []
  server.addHook('preClose', async () => {
    timers.push(
      setInterval(() => server.server.closeIdleConnections(), SWEEP_MS),
      setTimeout(closeSilent, SILENCE_MS),
    )
  })
  server.addHook('onClose', async () => {
    for (const timer of timers) clearTimeout(timer)
  })
}
