import { jitter, retryAfterMs } from './backoff.ts'
import type { Server } from './server.ts'
import type { SessionEvent } from './session-state.ts'

/** The maximum delay before the next attempt. A server without a session socket refuses every handshake. */
const MAX_RETRY_MS = 300_000

/** The session socket of one tab. */
export interface SessionSocket {
  /** Connects, unless the socket is connected or its delay is not over. */
  open(): void
  /** Closes the socket and clears its delay. */
  close(): void
  /** True once a message has arrived on this connection. */
  isLive(): boolean
}

/**
 * Prepares a session socket, without connecting.
 * @param onReady called when a lost socket may be opened again
 */
export function sessionSocket(
  server: Server,
  onEvent: (event: SessionEvent) => void,
  onReady: () => unknown,
): SessionSocket {
  let current: WebSocket | undefined
  let isLive = false
  let retryAt = 0
  let failures = 0

  function close(): void {
    const last = current
    current = undefined
    isLive = false
    retryAt = 0
    last?.close()
  }

  function open(): void {
    if (current || Date.now() < retryAt) return
    const socket = (current = server.socket('/ws/session'))
    socket.onmessage = ({ data }) => {
      if (socket !== current) return
      isLive = true
      failures = 0
      const event = JSON.parse(data as string) as SessionEvent
      if (event.event === 'ended') close()
      onEvent(event)
    }
    socket.onclose = ({ code, reason }) => {
      if (socket !== current) return
      close()
      if (code === 4401) return onEvent({ event: 'ended', reason: 'gone' })
      const waitMs = retryAfterMs(reason) + jitter(failures++, MAX_RETRY_MS)
      retryAt = Date.now() + waitMs
      setTimeout(onReady, waitMs + 1)
    }
  }

  return { open, close, isLive: () => isLive }
}
