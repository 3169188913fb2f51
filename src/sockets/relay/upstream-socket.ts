import { WebSocket } from 'ws'
import { USER_AGENT } from '../../upstream/headers.ts'
import { CLOSE, fromStatus, type CloseStatus } from '../close-codes.ts'
import type { PeerConnection } from '../peer.ts'
import { messageLimits, SOCKET_OPTIONS } from '../socket-options.ts'

/** What opening an upstream socket came to. */
export type OpenOutcome =
  | { readonly is: 'open'; readonly connection: PeerConnection }
  /** `cause` tells a fault of ours from one of upstream; it is not for the log, since its text may hold the URL. */
  | { readonly is: 'refused'; readonly close: CloseStatus; readonly why: string; readonly cause?: Error }

/** Where market data is, below WS_URL. */
export const PUBLIC_SOCKET_PATH = '/trading/v1/options/ws/public'
/** For all of it: name, connection, TLS, and the answer to the handshake. */
const OPEN_MS = 10_000
/** Made here, so that an open socket does not hold on to what its opening took. */
const ignore = (): void => undefined

/**
 * Opens a socket to upstream: without cookie, Origin or bearer, without compression, following nothing. It comes
 * paused, so that no early message is lost before it is joined to the browser's.
 * @param signal breaks the attempt off
 */
export function openUpstreamSocket(
  url: URL | string,
  maxMessageBytes: number,
  signal: AbortSignal,
): Promise<OpenOutcome> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, {
      ...SOCKET_OPTIONS,
      ...messageLimits(maxMessageBytes),
      followRedirects: false,
      headers: { 'user-agent': USER_AGENT },
    })
    const abort = (): void => refuse(CLOSE.ourFault, 'aborted')
    const deadline = setTimeout(() => refuse(CLOSE.upstreamTimeout, 'timeout'), OPEN_MS)
    const settle = (outcome: OpenOutcome): void => {
      clearTimeout(deadline)
      signal.removeEventListener('abort', abort)
      socket.removeAllListeners()
      // Whatever happens to it until somebody else listens must not take the process down.
      socket.on('error', ignore)
      resolve(outcome)
    }
    const refuse = (close: CloseStatus, why: string, cause?: Error): void => {
      settle({ is: 'refused', close, why, ...(cause && { cause }) })
      socket.terminate()
    }
    signal.addEventListener('abort', abort)
    socket.once('upgrade', ({ socket: wire }) => {
      socket.once('open', () => {
        socket.pause()
        settle({ is: 'open', connection: { socket, wire } })
      })
    })
    // Only the error's code: its message may carry the URL.
    socket.once('error', (error: Error & { code?: string }) =>
      refuse(CLOSE.upstreamUnreachable, error.code ?? error.name, error),
    )
    socket.once('unexpected-response', (_request, response) => {
      response.destroy()
      const { statusCode = 0 } = response
      refuse(fromStatus(statusCode), `status ${statusCode}`)
    })
    if (signal.aborted) abort()
  })
}
