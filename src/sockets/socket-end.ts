import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { CLOSE, closeSocket, type CloseStatus, type Ending, type Side } from './close-codes.ts'
import { Heartbeat } from './heartbeat.ts'
import { isMidMessage, onPeerClose, onUnfinished, readInTurns, unfinishedBytes } from './receiver.ts'
import { MIN_BYTES, type WaitingBytes } from './waiting-bytes.ts'
import { wholeFrame } from './whole-frame.ts'

/** An open WebSocket and the TCP or TLS connection that carries it. */
export interface OpenSocket {
  readonly socket: WebSocket
  readonly wire: Socket
  /** The TCP connection below, if the other one is TLS over it. */
  readonly tcp?: Socket
}

/** Node's overhead for a queued message. It counts, because a peer may send a million empty messages. */
export const BYTES_PER_MESSAGE = 512
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

/** What an end has from its owner: the callbacks for the news of the peer, none of which are called once the end is over. */
interface EndOwner {
  readonly message: (message: Buffer, isBinary: boolean) => void
  /** The peer has ended it: its side of the socket is closed. Called at most once. */
  readonly ended: (ending: Ending) => void
  /** Where the bytes count that wait for the peer, and for the end of its messages. */
  readonly waiting?: WaitingBytes | undefined
}

const noop = (): void => undefined

const TEXT = { binary: false }
const BINARY = { binary: true }

/** Whether a message is the last one of the buffer that was read from the connection. False for an empty one, which has no place in it. */
export function isLastOfRead({ buffer, byteOffset, length }: Buffer): boolean {
  return length > 0 && byteOffset + length === buffer.byteLength
}

/**
 * This server's end of an open socket, and all that is the same for each of them: it reads and sends, answers pings, notices a
 * peer that is silent or breaks the protocol, and is closed once. {@link Side} says how its peer may end it.
 */
export class SocketEnd {
  readonly socket: WebSocket
  readonly wire: Socket
  readonly heartbeat: Heartbeat
  /** Called for every watched message once it has left this process. */
  onSent: () => void = noop
  readonly #tcp: Socket
  readonly #side: Side
  readonly #owner: EndOwner
  #isOver = false
  /** Watched messages that have not left this process. */
  #waiting = 0

  /** Messages that are corked until the end of this turn of the event loop; 0 without a batch. */
  #batch = 0
  #isWatched = false
  /** Bytes that waited already when the batch began. */
  #queuedBefore = 0

  /** Bytes of control frames since the unfinished message began. */
  #controlBytes = 0

  /** Whether a message was sent since the peer was heard. */
  #isUnheard = false
  /** How many messages were sent, and how many of them the peer has read for certain. */
  #sentCount = 0
  #readCount = 0

  #isHungUp = false

  #isPonging = false
  /** The newest ping that arrived while a pong was still being sent. */
  #latestPing: Buffer | undefined

  constructor({ socket, wire, tcp = wire }: OpenSocket, side: Side, owner: EndOwner, heartbeatMs?: number) {
    this.socket = socket
    this.wire = wire
    this.#tcp = tcp
    this.#side = side
    this.#owner = owner
    this.heartbeat = new Heartbeat(this, () => this.#lose('silent'), heartbeatMs)
    this.#listen()
  }

  /** True while nothing is read from the peer. */
  get isPaused(): boolean {
    return this.heartbeat.isPaused
  }

  /** Bytes that wait in this process to be sent to the peer. */
  get bufferedBytes(): number {
    return this.wire.writableLength
  }

  /** Whether some of what was sent to the peer waits in this process, or nothing was heard of the peer since. */
  get isUnanswered(): boolean {
    return !this.wire.destroyed && (this.#isUnheard || this.bufferedBytes > 0)
  }

  /** How many messages were sent. */
  get sentCount(): number {
    return this.#sentCount
  }

  /** How many of them the peer has read for certain. Only a pong shows that: other messages may be older. */
  get readCount(): number {
    return this.#readCount
  }

  /** Asks the peer for a pong, which tells that it has read all that was sent before. */
  ping(): void {
    this.socket.ping(String(this.#sentCount))
  }

  /** These bytes, with the overhead of the queued messages. */
  get waitingBytes(): number {
    return this.wire.writableLength + this.#waiting * BYTES_PER_MESSAGE
  }

  /** All bytes that it holds: these, and those that the peer has sent and nobody has taken yet. */
  get heldBytes(): number {
    return this.waitingBytes + this.wire.readableLength + unfinishedBytes(this.socket)
  }

  /** Reads a socket that was paused until now. If its peer has closed it meanwhile, nobody has listened, and this end is over. */
  begin(): void {
    if (this.socket.readyState === this.socket.OPEN) this.socket.resume()
    else this.#lose('closed')
  }

  /** Closes the socket, after everything that was sent to the peer. Further calls have no effect. */
  close(status?: CloseStatus): void {
    if (this.#isOver) return
    this.#isOver = true
    this.heartbeat.stop()
    const { waitingBytes } = this
    closeSocket(this.socket, status)
    // Otherwise the peer would go on sending the message that made this socket lose.
    if (status === CLOSE.slowConsumer && unfinishedBytes(this.socket) >= MIN_BYTES) this.hangUp()
    if (waitingBytes > 0 && !this.wire.destroyed)
      this.#owner.waiting?.closing(this.wire, waitingBytes, () => this.cut())
  }

  /**
   * Ends the connection at once. What waits for the peer is not sent, not even by the kernel, which otherwise would go on for
   * minutes, until the peer reads again.
   */
  cut(): void {
    const { wire } = this
    // A connection whose end is just being sent cannot be reset: Node would report an error, and keep it open for good.
    if (wire.writableEnded && !wire.writableFinished && wire.writableLength === 0 && !wire.destroyed) {
      return void wire.once('finish', () => this.cut())
    }
    this.#tcp.resetAndDestroy()
    this.socket.terminate()
  }

  #end(ending: Ending): void {
    if (this.#isOver) return
    this.close(ending.own)
    this.#owner.ended(ending)
  }

  #lose(why: string): void {
    const { lost } = this.#side
    if (lost === undefined) return this.socket.terminate()
    if (this.socket.readyState === this.socket.OPEN || this.bufferedBytes > 0) this.cut()
    this.#end(lost(why))
  }

  /** Messages, pings and pongs are signs of life. */
  #listen(): void {
    const { socket, wire, heartbeat } = this
    if (!this.#side.isMasked) readInTurns(socket)
    socket.on('message', (data, isBinary) => {
      heartbeat.heard()
      this.#isUnheard = false
      this.#controlBytes = 0
      if (!this.#isOver) this.#owner.message(data as Buffer, isBinary)
    })
    const { waiting } = this.#owner
    // Upstream is trusted not to leave messages unfinished.
    if (waiting !== undefined && !this.#side.isMasked)
      onUnfinished(socket, wire, MIN_BYTES, (bytes) => waiting.add(bytes))
    socket.on('error', (error) => this.#end(this.#side.failed(error)))
    onPeerClose(socket, (code, reason) => this.#end(this.#side.closed(code, reason)))
    // Without a close frame. The event of ws would wait until the peer has read all that waits for it, which it may never do.
    wire.once('end', () => this.#isOver || this.#lose('closed 1006'))
    const control = ({ length }: Buffer): void => {
      heartbeat.heard()
      this.#isUnheard = false
      if (isMidMessage(socket)) this.#controlBytes += CONTROL_HEADER_BYTES + length
      if (this.#controlBytes <= MAX_CONTROL_BYTES) return
      this.#end(this.#side.tooManyControls)
      // Reading on would let the unfinished message grow.
      this.hangUp()
    }
    socket.on('pong', (data: Buffer) => {
      this.#readCount = Math.max(this.#readCount, Number(data) || 0)
      control(data)
    })
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
    this.#isUnheard = true
    this.#sentCount++
    const queued = this.wire.writableLength
    if (this.#batch === 0) {
      this.#isWatched = queued > 0
      if (!isLastOfRead(message)) this.#beginBatch(queued)
    }
    // The messages of a batch add up. A message that follows a watched one is watched too, so that the last callback means an
    // empty queue. The header counts, so that never more than `unwatchedBytes` wait without a callback.
    if (queued + MAX_HEADER_BYTES + message.length > unwatchedBytes) this.#isWatched = true
    const isWatched = this.#isWatched
    if (isWatched) this.#waiting++
    const onSent = isWatched ? (): void => this.#sent() : undefined
    const frame = this.#side.isMasked ? undefined : wholeFrame(message, isBinary)
    if (frame === undefined) this.socket.send(message, isBinary ? BINARY : TEXT, onSent)
    else this.wire.write(frame, onSent)
    if (this.#batch === 0) this.#note(message.length + BYTES_PER_MESSAGE)
    else if (++this.#batch > MAX_BATCH) SocketEnd.#endBatch(this)
    return isWatched
  }

  /**
   * Sends whole frames that this server has made, without a mask, in one write. A peer that is closing gets nothing.
   * @param unwatchedBytes while nothing is queued, frames up to this size need no callback, which is the usual case
   */
  write(frames: Buffer, unwatchedBytes: number): void {
    if (this.socket.readyState !== this.socket.OPEN) return
    if (frames.length <= unwatchedBytes && this.wire.writableLength === 0) this.wire.write(frames)
    else {
      this.#waiting++
      this.wire.write(frames, () => this.#sent())
    }
    this.#note(frames.length + BYTES_PER_MESSAGE)
  }

  /** Sends a frame that this server has made, in two parts that leave in one write. */
  writeParts(start: Buffer, end: Buffer): void {
    if (this.socket.readyState !== this.socket.OPEN) return
    this.#waiting++
    this.wire.cork()
    this.wire.write(start)
    this.wire.write(end, () => this.#sent())
    this.wire.uncork()
    this.#note(start.length + end.length + BYTES_PER_MESSAGE)
  }

  /** Stops reading. The time until {@link resume} does not count as silence. */
  pause(): void {
    if (this.isPaused) return
    this.heartbeat.pause()
    this.socket.pause()
  }

  resume(): void {
    if (!this.isPaused) return
    this.heartbeat.resume()
    this.socket.resume()
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
    this.heartbeat.heard()
    this.onSent()
  }

  /** Notes that a write waits, unless the connection has taken it at once. */
  #note(bytes: number): void {
    if (this.wire.writableLength > 0) this.#owner.waiting?.add(bytes)
  }

  #beginBatch(queued: number): void {
    this.#batch = 1
    this.#queuedBefore = queued
    this.wire.cork()
    process.nextTick(SocketEnd.#endBatch, this)
  }

  /** Stops reading, and ends the connection once everything that waits has been sent. */
  hangUp(): void {
    this.socket.pause()
    if (this.#isHungUp) return
    this.#isHungUp = true
    // Each call would add a listener to the connection.
    this.wire.destroySoon()
  }

  static #endBatch(this: void, end: SocketEnd): void {
    const messages = end.#batch - 1
    if (messages < 0) return
    end.#batch = 0
    const bytes = end.wire.writableLength - end.#queuedBefore
    end.wire.uncork()
    end.#note(bytes + messages * BYTES_PER_MESSAGE)
  }
}
