import { jitter, retryAfterMs } from './backoff.ts'
import type { Server } from './server.ts'
import type { SessionEvent } from './session-state.ts'

/** A server that has no session socket refuses every handshake: it is tried less and less often. */
const MAX_RETRY_MS = 300_000

/** The session socket of one tab. */
export interface SessionSocket {
  /** Connects, unless it is connected or has to wait. */
  open(): void
  /** Closes it. It may be opened again at once. */
  close(): void
  /** True once the server has said something on this connection. */
  isLive(): boolean
}

/**
 * Prepares one.
 * @param onReady told when it may be opened again after it was lost
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
