import { WebSocket } from 'ws'
import { USER_AGENT } from '../upstream/headers.ts'
import { ENDINGS, type Ending } from './close-codes.ts'

/** What opening an upstream socket came to. */
export type OpenOutcome =
  | { readonly is: 'open'; readonly socket: WebSocket }
  | { readonly is: 'refused'; readonly ending: Ending; readonly why: string }

const HANDSHAKE_MS = 10_000

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
      perMessageDeflate: false,
      maxPayload: maxMessageBytes,
      handshakeTimeout: HANDSHAKE_MS,
      followRedirects: false,
      skipUTF8Validation: false,
      headers: { 'user-agent': USER_AGENT },
    })
    const abort = (): void => socket.terminate()
    const refuse = (ending: Ending, why: string): void => {
      signal.removeEventListener('abort', abort)
      // What is left of the attempt may still fail; nobody listens any more.
      socket.on('error', () => undefined)
      socket.terminate()
      resolve({ is: 'refused', ending, why })
    }
    signal.addEventListener('abort', abort)
    if (signal.aborted) return refuse(ENDINGS.ourFault, 'aborted')
    socket.once('open', () => {
      signal.removeEventListener('abort', abort)
      socket.removeAllListeners()
      socket.pause()
      resolve({ is: 'open', socket })
    })
    // Only the error's code: its message may carry the URL.
    socket.once('error', (error: Error & { code?: string }) =>
      refuse(ENDINGS.upstreamUnreachable, error.code ?? error.name),
    )
    socket.once('unexpected-response', (_request, response) => {
      response.destroy()
      const { statusCode = 0 } = response
      refuse(statusCode === 429 ? ENDINGS.rateLimited : ENDINGS.upstreamError, `status ${statusCode}`)
    })
  })
}
