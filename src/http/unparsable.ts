import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Config } from '../config/config.ts'
import { Problem } from '../problem.ts'
import { rawBaseHeaders } from './base-headers.ts'
import { WRONG_VERSION } from './listener.ts'
import { requestInProgress, responseInProgress } from './http-socket.ts'

interface StatusLine {
  readonly status: number
  /** The reason phrase. Importing `node:http` for it would load all that it exports, WebSocket included: 15 ms of a start. */
  readonly reason: string
}

const WRONG_VERSION_LINE: StatusLine = { status: WRONG_VERSION, reason: 'HTTP Version Not Supported' }
/** By the code of the error. */
const STATUS_LINES: Readonly<Record<string, StatusLine>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, reason: 'Request Timeout' },
  HPE_HEADER_OVERFLOW: { status: 431, reason: 'Request Header Fields Too Large' },
  HPE_INVALID_VERSION: WRONG_VERSION_LINE,
  // The connection began with the preface of HTTP/2.
  HPE_PAUSED_H2_UPGRADE: WRONG_VERSION_LINE,
}
const MALFORMED: StatusLine = { status: 400, reason: 'Bad Request' }
/** Time for the client to read the response before the server destroys the connection. */
const LINGER_MS = 1000

/**
 * Makes the handler for requests that Node cannot parse, or that do not arrive in time. It writes a response by hand, and
 * closes.
 */
export function refuseUnparsable(config: Config['http']): (error: Error & { code?: string }, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET' || !mayRespond(socket)) return void socket.destroy()
    const { status, reason } = STATUS_LINES[error.code ?? ''] ?? MALFORMED
    const requestId = randomUUID()
    const body = new Problem('bad_request', { status }).body(requestId)
    const headers = [
      `HTTP/1.1 ${status} ${reason}`,
      'Content-Type: application/problem+json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Cache-Control: no-store',
      ...rawBaseHeaders(config, requestId),
      'Connection: close',
    ]
    socket.end(`${headers.join('\r\n')}\r\n\r\n${body}`)
    // Without this, a client that never closes could keep the connection.
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
}

/**
 * False if the client would mistake the response for that of another request, or did not wait for one: nothing was ever
 * sent; a response has begun or is complete; or an earlier request of this connection, which may still run, awaits one.
 */
function mayRespond(socket: Socket): boolean {
  if (socket.bytesRead === 0) return false
  const response = responseInProgress(socket)
  if (response !== undefined) return !response.headersSent && !response.req.complete
  return requestInProgress(socket)?.complete !== false
}
