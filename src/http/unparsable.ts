import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Config } from '../config/config.ts'
import { Problem } from '../problem.ts'
import { bareHeaders } from './base-headers.ts'
import { requestInProgress, responseInProgress } from './http-socket.ts'

/** Time for the answer to be read before the connection is cut. */
const LINGER_MS = 1000

/** Makes the handler of what Node could not parse as HTTP, or not in time: it answers by hand, and hangs up. */
export function refuseUnparsable(
  config: Config['http'],
): (error: Error & { code?: string }, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET' || !mayAnswer(socket)) return void socket.destroy()
    const status = statusOf(error.code)
    const requestId = randomUUID()
    const body = new Problem('bad_request', { status: Number.parseInt(status, 10) }).body(requestId)
    const head = [
      `HTTP/1.1 ${status}`,
      'Content-Type: application/problem+json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Cache-Control: no-store',
      ...bareHeaders(config, requestId),
      'Connection: close',
    ]
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
    // Whoever does not hang up in turn must not keep the connection.
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
}

/**
 * False when what would be written were no answer, or the answer to another request: nothing was ever asked; an answer
 * has been begun, or given already; or it belongs to an earlier request of this connection, which may be executed.
 */
function mayAnswer(socket: Socket): boolean {
  if (socket.bytesRead === 0) return false
  const response = responseInProgress(socket)
  if (response !== undefined) return !response.headersSent && !response.req.complete
  return requestInProgress(socket)?.complete !== false
}

function statusOf(code: string | undefined): string {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return '408 Request Timeout'
    case 'HPE_HEADER_OVERFLOW':
      return '431 Request Header Fields Too Large'
    default:
      return '400 Bad Request'
  }
}
