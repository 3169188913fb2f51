import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { standstill } from '../time/standstill.ts'
import { responseInProgress } from './http-socket.ts'

/** At most this many looks in a row find a time limit lifted, so that a process that often stands still judges in the end. */
const MAX_LIFTED = 4

/**
 * Has a server read what has arrived on a connection before a time limit ends it. Node's timers run before it reads, so that after
 * a standstill it would drop a request that has been waiting in the connection, and one whose response was on its way.
 */
export function readBeforeJudging(server: Server): void {
  let read = standstill.count
  /** Whether what arrived during a standstill is still to be read. */
  const isBehind = (): boolean => {
    const { count } = standstill
    // An immediate runs when the sockets that are ready have been read.
    if (count !== read) setImmediate(() => (read = count))
    return count !== read
  }
  // Node looks at these each second. While both are 0 it judges no request.
  for (const name of ['headersTimeout', 'requestTimeout'] as const) {
    let ms = server[name]
    let lifted = 0
    Object.defineProperty(server, name, {
      get() {
        lifted = lifted < MAX_LIFTED && isBehind() ? lifted + 1 : 0
        return lifted === 0 ? ms : 0
      },
      set(value: number) {
        ms = value
      },
    })
  }
  // With a listener, Node leaves it to this server to close a connection that was idle for too long.
  server.on('timeout', (socket: Socket) => {
    // Its response may be on its way, and need more than one turn of the event loop.
    if (isBehind() && responseInProgress(socket) !== undefined) return void socket.setTimeout(socket.timeout ?? 0)
    const bytes = socket.bytesRead + socket.bytesWritten
    // Bytes that are read or written have Node measure anew.
    setImmediate(() => {
      if (socket.bytesRead + socket.bytesWritten === bytes) socket.destroy()
    })
  })
}
