import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Config } from '../config/config.ts'
import { Problem } from '../problem.ts'
import { rawBaseHeaders } from './base-headers.ts'
import { WRONG_VERSION } from './listener.ts'
import { requestInProgress, responseInProgress } from './http-socket.ts'

/** Any other error code is a 400. */
const STATUSES: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
  HPE_INVALID_VERSION: WRONG_VERSION,
  // The connection began with the preface of HTTP/2.
  HPE_PAUSED_H2_UPGRADE: WRONG_VERSION,
}
/** Time for the client to read the response before the server destroys the connection. */
const LINGER_MS = 1000

/**
 * Makes the handler for requests that Node cannot parse, or that do not arrive in time. It writes a response by hand, and
 * closes.
 */
export function refuseUnparsable(config: Config['http']): (error: Error & { code?: string }, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET' || !mayRespond(socket)) return void socket.destroy()
    const status = STATUSES[error.code ?? ''] ?? 400
    const requestId = randomUUID()
    const body = new Problem('bad_request', { status }).body(requestId)
    const headers = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
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
