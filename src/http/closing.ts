import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

const SWEEP_MS = 50

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
  // A connection that was busy when the server closed stays open after its response, and would delay the end.
  const sweep = setInterval(() => server.server.closeIdleConnections(), SWEEP_MS)
  try {
    await server.close()
  } finally {
    clearInterval(sweep)
  }
}
