import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { judgeAfter } from '../time/judge-after.ts'
import { isHttp, pretendBusy, responseInProgress } from './http-socket.ts'

const SWEEP_MS = 50
/** The first request of a connection that was opened this recently may still be on its way, or have come in part. */
const SILENCE_MS = 1000

/**
 * Closes a server that may be busy. If it listens, it serves on for `waitMs`, until the balancer has noticed that it is not ready;
 * then it refuses new work and finishes the requests in progress.
 */
export async function closeServer(server: FastifyInstance, waitMs: number): Promise<void> {
  if (waitMs > 0 && server.server.listening) {
    // Every connection ends with its next response, so that few are left open when the time is up.
    server.server.prependListener('request', (_request, response) => void (response.shouldKeepAlive = false))
    await delay(waitMs)
  }
  await server.close()
}

/**
 * Sees to it that no connection without a request delays the end of a server for more than a second. It may be one that was busy
 * when the server closed, and stays open after its response, or one that Node takes for busy: it has sent nothing yet, since browsers
 * and balancers open such connections ahead, or half a request, or still sends a body that has its response. A response that is being
 * sent is sent to its end.
 */
export function closeUnusedConnections(server: FastifyInstance): void {
  /** When each was opened (ms of the monotonic clock). */
  const connections = new Map<Socket, number>()
  server.server.on('connection', (socket) => {
    connections.set(socket, performance.now())
    socket.once('close', () => connections.delete(socket))
  })
  spareExpected(server, connections)
  let sweeps: NodeJS.Timeout | undefined
  let endSilence: (() => void) | undefined
  const closeUnused = (): void => {
    const latest = performance.now() - SILENCE_MS
    for (const [socket, openedAt] of connections) {
      // While sockets close, the server is still there for others, and refuses their requests.
      if (openedAt <= latest && isHttp(socket) && responseInProgress(socket) === undefined) socket.destroy()
    }
    endSilence = judgeAfter(SWEEP_MS, closeUnused)
  }
  server.addHook('preClose', async () => {
    sweeps = setInterval(() => server.server.closeIdleConnections(), SWEEP_MS)
    endSilence = judgeAfter(SILENCE_MS, closeUnused)
  })
  server.addHook('onClose', async () => {
    clearInterval(sweeps)
    endSilence?.()
  })
}

/**
 * Keeps Node from closing connections that it takes for idle, here and when the server closes. Such are those whose responses are
 * ended but not yet sent: a browser on a slow network would lose the rest of a response that it is just reading. From Node 26 on, so
 * are those whose first request is still on its way.
 */
function spareExpected({ server }: FastifyInstance, connections: ReadonlyMap<Socket, number>): void {
  const closeIdle = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    const spared = [...connections.keys()].filter(
      (socket) => socket.bytesRead === 0 || responseInProgress(socket)?.finished === true,
    )
    const ends = spared.map(pretendBusy)
    closeIdle()
    for (const end of ends) end()
  }
}
