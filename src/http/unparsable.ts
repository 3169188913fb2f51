import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Config } from '../config/config.ts'
import { Problem } from '../problem.ts'
import { rawBaseHeaders } from './base-headers.ts'
import { PAGE_HEADERS } from './html.ts'
import { requestInProgress, responseInProgress } from './http-socket.ts'
import { WRONG_VERSION } from './listener.ts'
import { problemPage } from './problem-pages.ts'

interface StatusLine {
  readonly status: number
  /** The reason phrase. Importing `node:http` for it would load all that it exports, WebSocket included: 7 ms of a start. */
  readonly reason: string
  readonly detail?: string
}

/** An error of Node's parser, with the bytes that arrived last. */
type ParserError = Error & { readonly code?: string; readonly rawPacket?: unknown }

const WRONG_VERSION_LINE: StatusLine = { status: WRONG_VERSION, reason: 'HTTP Version Not Supported' }
/** By the code of the error. */
const STATUS_LINES: Readonly<Record<string, StatusLine>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, reason: 'Request Timeout' },
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    detail:
      'The headers of the request are larger than 16 KiB. Usually it is the cookies: delete the cookies of this site in your browser, then try again.',
  },
  HPE_INVALID_VERSION: WRONG_VERSION_LINE,
  // The connection began with the preface of HTTP/2.
  HPE_PAUSED_H2_UPGRADE: WRONG_VERSION_LINE,
}
const MALFORMED: StatusLine = { status: 400, reason: 'Bad Request' }
/** The Accept header of a navigation, as far as it is among the bytes at hand: nothing has parsed them. */
const ACCEPTS_PAGE = /\r\naccept:[^\r\n]*text\/html/i
/** Time for the client to read the response before the server destroys the connection. */
const LINGER_MS = 1000

/**
 * Makes the handler for requests that Node cannot parse, or that do not arrive in time. It writes a response by hand, and
 * closes.
 */
export function refuseUnparsable(config: Config['http']): (error: ParserError, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET' || !mayRespond(socket)) return void socket.destroy()
    const { status, reason, detail } = STATUS_LINES[error.code ?? ''] ?? MALFORMED
    const requestId = randomUUID()
    const problem = new Problem('bad_request', { status, detail })
    const isPage = detail !== undefined && ACCEPTS_PAGE.test(String(error.rawPacket))
    const body = isPage ? problemPage(problem, requestId).text : problem.body(requestId)
    const type = isPage ? PAGE_HEADERS : { 'content-type': 'application/problem+json' }
    const headers = [
      `HTTP/1.1 ${status} ${reason}`,
      `Date: ${new Date().toUTCString()}`,
      ...Object.entries(type).map(([name, value]) => `${name}: ${value}`),
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
