import { jitter, retryAfterMs } from '../base/backoff.ts'
import type { Server } from '../server.ts'
import type { SessionEvent } from './session-state.ts'
import { SLOW_MS } from './session-times.ts'

/** The session socket of one tab. */
export interface SessionSocket {
  /**
   * Connects, unless the socket is connected or its delay is not over.
   * @returns after how many milliseconds to check the session and to call this again
   */
  open(): number
  /** Closes the socket and clears its delay. */
  close(): void
}

/**
 * Prepares a session socket, without connecting.
 * @param onEvent called with every message, and with undefined when {@link SessionSocket.open} has to be called again
 */
export function sessionSocket(
  server: Server,
  onEvent: (event: SessionEvent | null | undefined) => void,
): SessionSocket {
  /** The interval of checks without a session socket, for example because the server refuses one more with 4429. */
  const POLL_MS = 30_000
  let current: WebSocket | undefined
  let intervalMs: number
  /** When it may be opened, or was. 0 without a delay: a clock that is set back would make one of any time. */
  let openAt = 0
  let failures = 0

  function close(waitMs = 0): void {
    openAt = waitMs && Date.now() + waitMs
    if (!current) return
    current.onmessage = current.onclose = null
    current.close()
    current = undefined
  }

  function open(): number {
    const now = Date.now()
    if (current) return intervalMs
    if (openAt > now) return Math.min(openAt - now, POLL_MS)
    openAt = now
    try {
      current = server.socket('/ws/session')
      current.onmessage = ({ data }) => {
        intervalMs = SLOW_MS
        const event = JSON.parse(data as string) as SessionEvent | null
        if (event?.reason) close()
        onEvent(event)
      }
      current.onclose = ({ code, reason }) => {
        // The delays grow until a socket has lasted for this long.
        if (Date.now() - openAt > 10_000) failures = 0
        close(retryAfterMs(reason) + (code === 4429 ? SLOW_MS : jitter(failures++, SLOW_MS)))
        onEvent(code === 4401 ? { reason: 'gone' } : undefined)
      }
    } catch {
      // A browser may refuse the address, so the session is only polled.
    }
    return (intervalMs = POLL_MS)
  }

  return { open, close }
}
