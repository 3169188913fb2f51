import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Browsers do not pipeline, and balancers hardly do, so a client that exceeds this is filling the memory. */
const MAX_PENDING = 16

/**
 * After so many pieces of a body nothing more is read in this turn of the event loop, and after so many requests nothing more at all. A
 * client that waits for its responses has 48 at most: so often Node looks in a turn who has sent something.
 */
const MAX_IN_TURN = 64
/** More than this in a turn, to a client that has its response already, are from somebody who wants to keep the server busy. */
const MAX_UNREAD_IN_TURN = 512
/** How fast a connection can send pieces. */
const PIECES_PER_MS = 20

/** With this response to the headers of a request, Node's parser stops. */
const FAILURE = -1

/** Internals of Node's HTTP server on a connection: the request it reads, and the response it writes. */
type HttpSocket = Socket & {
  readonly parser?: { readonly incoming?: IncomingMessage | null; resume(): void; onIncoming: () => number } | null
  _httpMessage?: ResponseInProgress | { readonly finished: false } | null
  /** Whether nothing is read for the time being, whoever wants the rest of a body. */
  _paused?: boolean
}

/** An unfinished response, and its request. */
type ResponseInProgress = ServerResponse & { readonly req: IncomingMessage; finished: boolean }

/** The unfinished response of a connection, whether or not writing has begun. */
export function responseInProgress(socket: Socket): ResponseInProgress | undefined {
  // oxlint-disable-next-line no-underscore-dangle -- Node offers no public property
  return ((socket as HttpSocket)._httpMessage as ResponseInProgress | null) ?? undefined
}

/** Has Node take a connection for one that is being answered, and so not for an idle one. @returns ends that */
export function pretendBusy(socket: Socket): () => void {
  const response = responseInProgress(socket)
  if (response === undefined) {
    const connection = socket as HttpSocket
    // oxlint-disable-next-line no-underscore-dangle -- see above
    connection._httpMessage = { finished: false }
    // oxlint-disable-next-line no-underscore-dangle -- see above
    return () => (connection._httpMessage = null)
  }
  const { finished } = response
  response.finished = false
  return () => (response.finished = finished)
}

/** Whether requests are read on a connection, and not the frames of a WebSocket. */
export function isHttp(socket: Socket): boolean {
  return Boolean((socket as HttpSocket).parser)
}

/** The request whose headers were read last on a connection. */
export function requestInProgress(socket: Socket): IncomingMessage | undefined {
  return (socket as HttpSocket).parser?.incoming ?? undefined
}

/**
 * Reads a body in chunks by turns. They are as small as their sender likes, and Node would read a connection 32 times in a turn of the
 * event loop: with chunks of a byte, that takes a second in which all others wait.
 */
function readInTurns(request: IncomingMessage, response: ServerResponse): void {
  const socket = request.socket as HttpSocket
  const held: Buffer[] = []
  let pieces = 0
  const push = request.push.bind(request)
  const pushHeld = (): unknown => held.length > 0 && push(Buffer.concat(held.splice(0)))
  const goOn = (): void => {
    // oxlint-disable-next-line no-underscore-dangle -- see above
    socket._paused = false
    socket.parser?.resume()
    if (request.complete || request.readableLength < request.readableHighWaterMark) socket.resume()
  }
  const endTurn = (): void => {
    pushHeld()
    if (pieces >= MAX_IN_TURN) setTimeout(goOn, pieces / PIECES_PER_MS).unref()
    pieces = 0
  }
  request.push = (piece, encoding) => {
    if (pieces++ === 0) setImmediate(endTurn)
    if (pieces === MAX_IN_TURN) {
      // oxlint-disable-next-line no-underscore-dangle -- without it, whoever wants the rest of the body would resume the socket
      socket._paused = true
      socket.pause()
    }
    if (pieces > MAX_UNREAD_IN_TURN && response.writableFinished) socket.destroy()
    // Whoever reads the body may have a system call for each piece.
    if (pieces > MAX_IN_TURN && piece !== null) {
      held.push(piece)
      return true
    }
    pushHeld()
    return push(piece, encoding)
  }
  // Node drops a rest that nobody reads, too, but not by turns.
  Object.assign(request, { _dump: () => void request.resume() })
}

/**
 * Breaks a response off so that its client notices. With HTTP/1.0 the end of the connection would be the regular end of a response
 * without a length (RFC 9112 §6.3), so the connection is reset.
 */
export function breakOff(response: ServerResponse): void {
  if (response.req.httpVersion === '1.0') response.socket?.resetAndDestroy()
  else response.destroy()
}

/**
 * Counts the requests of each connection that wait for a response. Node stops reading only when written responses pile
 * up, so without this count a client could pipeline any number of requests to a slow upstream.
 */
export class PendingResponses {
  readonly #counts = new WeakMap<Socket, { waiting: number; inTurn: number }>()

  /** Takes on a request. Returns false, and closes its connection, if too many wait for a response there, or were read together. */
  begin(request: IncomingMessage, response: ServerResponse): boolean {
    const socket = request.socket as HttpSocket
    const counts = this.#counts.get(socket) ?? { waiting: 0, inTurn: 0 }
    this.#counts.set(socket, counts)
    counts.waiting++
    response.on('close', () => counts.waiting--)
    if (counts.inTurn++ === 0) setImmediate(() => (counts.inTurn = 0))
    const isTooMany = counts.waiting > MAX_PENDING || counts.inTurn > MAX_IN_TURN
    if (isTooMany) {
      // Those that have been read with this one, which may be thousands, are parsed no more.
      if (socket.parser) socket.parser.onIncoming = () => FAILURE
      socket.destroy()
    } else if (request.headers['transfer-encoding'] !== undefined) readInTurns(request, response)
    return !isTooMany
  }
}
