import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { isMidMessage, onPeerClose } from './receiver.ts'
import { wholeFrame } from './whole-frame.ts'

/** An open WebSocket and the TCP or TLS connection that carries it. */
export interface PeerConnection {
  readonly socket: WebSocket
  readonly wire: Socket
}

/** Node's overhead for a queued message. It counts, because a peer may send a million empty messages. */
const BYTES_PER_MESSAGE = 512
/** Most messages that leave in one write. */
const MAX_BATCH = 64

/**
 * Most bytes of control frames between the fragments of one message. A fragment keeps alive the whole buffer that it was read in,
 * so pings between tiny fragments would multiply their memory.
 */
const MAX_CONTROL_BYTES = 65_536
/** The longest header of a frame, with a mask (RFC 6455 §5.2). */
const MAX_HEADER_BYTES = 14
/** The header and the mask of a control frame (RFC 6455 §5.2). */
const CONTROL_HEADER_BYTES = 6

/** An error of ws, or of the connection. */
type SocketError = Error & { readonly code?: string }

/** What an owner of a peer learns of it. */
export interface PeerEvents {
  readonly message: (message: Buffer, isBinary: boolean) => void
  /** The peer has broken the protocol, and ws has already sent it the close frame for that; or the connection failed. */
  readonly error: (error: SocketError) => void
  /** Its close frame has arrived or, without one, its connection has ended. It may be called twice. */
  readonly closed: (code: number, reason: Buffer) => void
  /** Control frames pile up in the middle of a message. The owner ends the socket; the connection is hung up afterwards. It may be called twice. */
  readonly tooManyControls: () => void
}

const noop = (): void => undefined

const TEXT = { binary: false }
const BINARY = { binary: true }

/** Whether a message is the last one of the buffer that was read from the connection. False for an empty one, which has no place in it. */
export function isLastOfRead({ buffer, byteOffset, length }: Buffer): boolean {
  return length > 0 && byteOffset + length === buffer.byteLength
}

/** One end of a relay: its socket, and when it was last active. Times are ms of the monotonic clock. */
export class Peer {
  readonly socket: WebSocket
  /** Called for every watched message once it has left this process. */
  onSent: () => void = noop
  readonly wire: Socket
  readonly #isMasked: boolean
  /** Watched messages that have not left this process. */
  #waiting = 0
  #receivedAt = performance.now()
  #bytesSeen = 0
  #pausedAt: number | undefined

  /** Messages that are corked until the end of this turn of the event loop; 0 without a batch. */
  #batch = 0
  #isWatched = false

  /** Bytes of control frames since the unfinished message began. */
  #controlBytes = 0

  #isHungUp = false

  #isPonging = false
  /** The newest ping that arrived while a pong was still being sent. */
  #latestPing: Buffer | undefined

  /** @param isMasked true for upstream: a client masks its frames (RFC 6455 §5.3) */
  constructor({ socket, wire }: PeerConnection, isMasked: boolean) {
    this.socket = socket
    this.wire = wire
    this.#isMasked = isMasked
  }

  /** True while nothing is read from it. */
  get isPaused(): boolean {
    return this.#pausedAt !== undefined
  }

  /** Bytes that wait in this process to be sent to it. */
  get bufferedBytes(): number {
    return this.wire.writableLength
  }

  /** The same, with the overhead of the queued messages. */
  get waitingBytes(): number {
    return this.wire.writableLength + this.#waiting * BYTES_PER_MESSAGE
  }

  /** Reports what happens to its socket. Pings are answered, and messages, pings and pongs noted as signs of life. */
  listen({ message, error, closed, tooManyControls }: PeerEvents): void {
    const { socket } = this
    socket.on('message', (data, isBinary) => {
      this.#receivedAt = performance.now()
      this.#controlBytes = 0
      message(data as Buffer, isBinary)
    })
    socket.on('error', error)
    onPeerClose(socket, closed)
    const control = ({ length }: Buffer): void => {
      this.#receivedAt = performance.now()
      if (isMidMessage(socket)) this.#controlBytes += CONTROL_HEADER_BYTES + length
      if (this.#controlBytes <= MAX_CONTROL_BYTES) return
      tooManyControls()
      // Reading on would let the unfinished message grow.
      this.hangUp()
    }
    socket.on('pong', control)
    socket.on('ping', (data: Buffer) => {
      control(data)
      this.#pong(data)
    })
  }

  /**
   * Sends a message. Messages that were read together leave in one write; a message that was read alone leaves at once.
   * @param unwatchedBytes while nothing else is queued, one write of up to this size needs no callback, which is the usual case
   * @returns whether {@link onSent} will be called for this message
   */
  send(message: Buffer, isBinary: boolean, unwatchedBytes: number): boolean {
    const queued = this.wire.writableLength
    if (this.#batch === 0) {
      this.#isWatched = queued > 0
      if (!isLastOfRead(message)) this.#beginBatch()
    }
    // The messages of a batch add up. Whatever follows a watched message is watched too, so that the last callback means an
    // empty queue. The header counts, so that never more than `unwatchedBytes` wait without a callback.
    if (queued + MAX_HEADER_BYTES + message.length > unwatchedBytes) this.#isWatched = true
    const isWatched = this.#isWatched
    if (isWatched) this.#waiting++
    const onSent = isWatched ? (): void => this.#sent() : undefined
    const frame = this.#isMasked ? undefined : wholeFrame(message, isBinary)
    if (frame === undefined) this.socket.send(message, isBinary ? BINARY : TEXT, onSent)
    else this.wire.write(frame, onSent)
    if (this.#batch > 0 && ++this.#batch > MAX_BATCH) Peer.#endBatch(this)
    return isWatched
  }

  /**
   * Sends whole frames that this server has made, without a mask, in one write. A peer that is closing gets nothing.
   * @param unwatchedBytes while nothing is queued, frames up to this size need no callback, which is the usual case
   */
  write(frames: Buffer, unwatchedBytes: number): void {
    if (this.socket.readyState !== this.socket.OPEN) return
    if (frames.length <= unwatchedBytes && this.wire.writableLength === 0) {
      this.wire.write(frames)
      return
    }
    this.#waiting++
    this.wire.write(frames, () => this.#sent())
  }

  /** Sends a frame that this server has made, in two parts that leave in one write. */
  writeParts(start: Buffer, end: Buffer): void {
    if (this.socket.readyState !== this.socket.OPEN) return
    this.#waiting++
    this.wire.cork()
    this.wire.write(start)
    this.wire.write(end, () => this.#sent())
    this.wire.uncork()
  }

  /** Stops reading from it. The time until {@link resume} does not count as silence. */
  pause(): void {
    if (this.isPaused) return
    this.#pausedAt = performance.now()
    this.socket.pause()
  }

  resume(): void {
    if (this.#pausedAt === undefined) return
    this.excuse(performance.now() - this.#pausedAt)
    this.#pausedAt = undefined
    this.socket.resume()
  }

  /** Counts any bytes since the last check as a sign of life, even if they are only the middle of a long message. */
  checkBytes(lastCheckAt: number): void {
    const { bytesRead } = this.wire
    if (bytesRead === this.#bytesSeen) return
    this.#bytesSeen = bytesRead
    this.#receivedAt = Math.max(this.#receivedAt, lastCheckAt)
  }

  /** Does not count this many ms as silence. */
  excuse(ms: number): void {
    this.#receivedAt += ms
  }

  /** How long it has been silent. Only valid while it is not paused. */
  silentMs(now: number): number {
    return now - this.#receivedAt
  }

  /** Answers a ping. If pings outpace pongs, only the latest is answered (RFC 6455 §5.5.3), so at most two wait here. */
  #pong(data: Buffer): void {
    if (this.#isPonging) {
      this.#latestPing = data
      return
    }
    this.#isPonging = true
    this.socket.pong(data, undefined, (error) => {
      this.#isPonging = false
      const next = this.#latestPing
      this.#latestPing = undefined
      if (next !== undefined && !error) this.#pong(next)
    })
  }

  #sent(): void {
    this.#waiting--
    // It has read something: it is slow, but alive.
    this.#receivedAt = performance.now()
    this.onSent()
  }

  #beginBatch(): void {
    this.#batch = 1
    this.wire.cork()
    process.nextTick(Peer.#endBatch, this)
  }

  /** Stops reading, and ends the connection once everything that waits has been sent. */
  hangUp(): void {
    this.socket.pause()
    if (this.#isHungUp) return
    this.#isHungUp = true
    // Each call would add a listener to the connection.
    this.wire.destroySoon()
  }

  static #endBatch(this: void, peer: Peer): void {
    if (peer.#batch === 0) return
    peer.#batch = 0
    peer.wire.uncork()
  }
}
