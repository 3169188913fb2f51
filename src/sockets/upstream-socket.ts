import { WebSocket } from 'ws'
import { USER_AGENT } from '../upstream/headers.ts'
import { CLOSE, fromStatus, type CloseStatus } from './close-codes.ts'
import type { PeerConnection } from './peer.ts'
import { messageLimits, SOCKET_OPTIONS } from './socket-options.ts'

/** The outcome of opening an upstream socket. */
export type OpenOutcome =
  | { readonly is: 'open'; readonly connection: PeerConnection }
  /** `cause` shows whether the fault is this server's. Its text may contain the URL, so the log gets `why` instead. */
  | { readonly is: 'refused'; readonly close: CloseStatus; readonly why: string; readonly cause?: Error }

/** The path of the market data socket below WS_URL. */
export const PUBLIC_SOCKET_PATH = '/trading/v1/options/ws/public'
/** For everything: DNS, connection, TLS and the handshake. */
const OPEN_MS = 10_000
/** Defined here, so that an open socket does not keep the closure of its opening alive. */
const ignore = (): void => undefined

/**
 * Opens a socket to upstream, without cookie, Origin, bearer, compression or redirects. The socket is paused, so that no early
 * message is lost before the relay is joined.
 * @param signal aborts the attempt
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
      // An error before the relay listens must not crash the process.
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
    // Only the code of the error is logged: its message may contain the URL.
    socket.once('error', (error: Error & { code?: string }) =>
      refuse(CLOSE.upstreamUnreachable, error.code ?? error.name, error),
    )
    socket.once('unexpected-response', (_request, response) => {
      response.destroy()
      const { statusCode = 0, headers } = response
      refuse(fromStatus(statusCode, headers['retry-after']), `status ${statusCode}`)
    })
    if (signal.aborted) abort()
  })
}
