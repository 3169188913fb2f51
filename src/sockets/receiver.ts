import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { BROWSER, CLOSE } from './close-codes.ts'

/** Most frames of a browser that are handled in one turn of the event loop. */
const MAX_IN_TURN = 64
/** For each so many bytes, a frame counts as one more. */
const BYTES_PER_FRAME = 64

/**
 * Internals of ws that it does not expose. Only this file reads them; the tests of unfinished messages and of late closes fail
 * if a new version of ws moves them.
 */
type Receiver = EventEmitter & {
  /** The fragments of an unfinished message. */
  readonly _fragments: readonly Buffer[]
  /** The bytes of the fragments, and those of the unfinished frame. */
  readonly _messageLength: number
  readonly _bufferedBytes: number
  /** The most bytes that a message may have. */
  readonly _maxPayload: number
  /** Whether what was read together is handled in one turn of the event loop. */
  _allowSynchronousEvents: boolean
  /** Is called after each fragment. */
  dataMessage(done: unknown): void
}

/** Whether the peer has begun a message and not finished it. */
export function isMidMessage(socket: WebSocket): boolean {
  // oxlint-disable-next-line no-underscore-dangle -- ws has no other name for it
  return receiverOf(socket)._fragments.length > 0
}

/** The bytes of a message that the peer has begun and not finished. */
export function unfinishedBytes(socket: WebSocket): number {
  // oxlint-disable-next-line no-underscore-dangle -- ws has no other name for it
  const { _messageLength: fragments, _bufferedBytes: frame } = receiverOf(socket)
  return fragments + frame
}

/**
 * Calls back with the bytes of each read that leaves a message of the peer unfinished, where such a message may become larger than
 * `bytes`. Elsewhere this costs nothing.
 */
export function onUnfinished(socket: WebSocket, wire: Socket, bytes: number, unfinished: (more: number) => void): void {
  // oxlint-disable-next-line no-underscore-dangle -- ws has no other name for it
  if (receiverOf(socket)._maxPayload <= bytes) return
  // The listener of ws comes first, and reads everything at once.
  wire.on('data', ({ length }: Buffer) => {
    if (unfinishedBytes(socket) > 0) unfinished(length)
  })
}

/**
 * Has only some frames of a browser be handled in one turn of the event loop, and nothing more be read meanwhile. Otherwise a connection
 * would be read 32 times in a turn, and with frames of a byte that takes a second in which all others wait.
 */
export function readInTurns(socket: WebSocket): void {
  const receiver = receiverOf(socket)
  let frames = 0
  const count = (more: number): void => {
    frames += more
    if (frames < MAX_IN_TURN) return
    frames = 0
    // oxlint-disable-next-line no-underscore-dangle -- ws has this as an option of the whole socket
    receiver._allowSynchronousEvents = false
    // oxlint-disable-next-line no-underscore-dangle -- see above
    setImmediate(() => (receiver._allowSynchronousEvents = true))
  }
  const handled = ({ length }: Buffer): void => count(length / BYTES_PER_FRAME)
  const one = (): void => count(1)
  receiver.on('message', handled).on('ping', one).on('pong', one)
  const dataMessage = receiver.dataMessage.bind(receiver)
  receiver.dataMessage = (done) => {
    count(1)
    dataMessage(done)
  }
}

/**
 * Calls back as soon as the peer's close frame arrives or, without one, when the connection ends. The `close` event of ws always
 * waits for the end of the connection, which a peer can delay.
 */
export function onPeerClose(socket: WebSocket, closed: (code: number, reason: Buffer) => void): void {
  receiverOf(socket).once('conclude', closed)
  socket.on('close', closed)
}

/**
 * Calls back when the peer's message is larger than ws may receive, before ws closes the connection with 1009: the callback may
 * close it with another code.
 */
export function onTooLong(socket: WebSocket, tooLong: () => void): void {
  receiverOf(socket).prependOnceListener('error', (error: Error) => {
    if (BROWSER.failed(error).own === CLOSE.tooBig) tooLong()
  })
}

function receiverOf(socket: WebSocket): Receiver {
  // oxlint-disable-next-line no-underscore-dangle -- ws has no other name for it
  return (socket as unknown as { readonly _receiver: Receiver })._receiver
}
