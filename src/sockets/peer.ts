import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { isMidMessage } from './receiver.ts'
import { wholeFrame } from './whole-frame.ts'

/** An open WebSocket, and the connection it runs on. */
export interface PeerConnection {
  readonly socket: WebSocket
  readonly wire: Socket
}

/** What Node keeps for a message that waits, however short it is. Counted, since a million empty ones are no small thing. */
const BYTES_PER_MESSAGE = 512
/** So many messages that come at once leave in one write. */
const MAX_BATCH = 64

/** Most bytes of control frames in the middle of a message. */
const MAX_CONTROL_BYTES = 65_536
/** Of a control frame beside its payload: the head and the mask (RFC 6455 §5.2). */
const CONTROL_HEAD_BYTES = 6

const noop = (): void => undefined

const TEXT = { binary: false }
const BINARY = { binary: true }

/**
 * Whether a message ends where what was read from the connection ends: then nothing more of this read follows it. An empty
 * one stands nowhere, so it cannot tell.
 */
function isLastOfRead({ buffer, byteOffset, length }: Buffer): boolean {
  return length > 0 && byteOffset + length === buffer.byteLength
}

/** One end of a relay: its socket, and when its peer was last heard. Times are ms of the monotonic clock. */
export class Peer {
  readonly socket: WebSocket
  /** Called for every watched message that has left this process. */
  onSent: () => void = noop
  readonly #wire: Socket
  readonly #isMasked: boolean
  /** Messages for its peer whose sending is waited for. */
  #waiting = 0
  #receivedAt = performance.now()
  #bytesSeen = 0
  #pausedAt: number | undefined

  /** Messages held together until the end of this turn of the event loop. */
  #batch = 0
  #isWatched = false

  /** Bytes of the control frames that came in the middle of the message that is being received. */
  #controlBytes = 0

  #isPonging = false
  /** The newest ping that came while a pong was still on its way out. */
  #latestPing: Buffer | undefined

  /** @param isMasked whether its peer is a server: what goes there is masked (RFC 6455 §5.3) */
  constructor({ socket, wire }: PeerConnection, isMasked: boolean) {
    this.socket = socket
    this.#wire = wire
    this.#isMasked = isMasked
  }

  /** True while its peer is kept from talking. */
  get isPaused(): boolean {
    return this.#pausedAt !== undefined
  }

  /** What waits in this process for its peer. */
  get bufferedBytes(): number {
    return this.#wire.writableLength
  }

  /** The same, with what it costs to keep it. */
  get waitingBytes(): number {
    return this.#wire.writableLength + this.#waiting * BYTES_PER_MESSAGE
  }

  /** Its peer gave a sign of life. */
  received(): void {
    this.#receivedAt = performance.now()
  }

  /** A whole message has come from its peer. */
  receivedMessage(): void {
    this.received()
    this.#controlBytes = 0
  }

  /**
   * A ping or pong has come from its peer.
   * @returns false when too many have come in the middle of a message. Each piece of it keeps all that was read with it:
   * a stranger who puts 64 KiB of pings between pieces would make them that large.
   */
  receivedControl({ length }: Buffer): boolean {
    this.received()
    if (isMidMessage(this.socket)) this.#controlBytes += CONTROL_HEAD_BYTES + length
    return this.#controlBytes <= MAX_CONTROL_BYTES
  }

  /**
   * Sends a message to its peer. What was read at once goes out in one write; what came alone, at once.
   * @param unwatchedBytes nobody needs to hear of a message up to this size when nothing waits, which is nearly always
   * @returns whether {@link onSent} will be called once it has left this process
   */
  send(message: Buffer, isBinary: boolean, unwatchedBytes: number): boolean {
    if (this.#batch === 0) {
      this.#isWatched = this.#wire.writableLength > 0
      if (!isLastOfRead(message)) this.#beginBatch()
    }
    // What follows a watched one is watched too: the last of them tells that nothing is left.
    if (message.length > unwatchedBytes) this.#isWatched = true
    const isWatched = this.#isWatched
    if (isWatched) this.#waiting++
    const onSent = isWatched ? (): void => this.#sent() : undefined
    const frame = this.#isMasked ? undefined : wholeFrame(message, isBinary)
    if (frame === undefined) this.socket.send(message, isBinary ? BINARY : TEXT, onSent)
    else this.#wire.write(frame, onSent)
    if (this.#batch > 0 && ++this.#batch > MAX_BATCH) Peer.#endBatch(this)
    return isWatched
  }

  /** Answers a ping. Of those that come faster than pongs go out the newest is (RFC 6455 §5.5.3): no more than two wait here. */
  pong(data: Buffer): void {
    if (this.#isPonging) {
      this.#latestPing = data
      return
    }
    this.#isPonging = true
    this.socket.pong(data, undefined, (error) => {
      this.#isPonging = false
      const next = this.#latestPing
      this.#latestPing = undefined
      if (next !== undefined && !error) this.pong(next)
    })
  }

  /** Stops reading from it. The clock of its silence stands still. */
  pause(): void {
    if (this.isPaused) return
    this.#pausedAt = performance.now()
    this.socket.pause()
  }

  /** Reads on. */
  resume(): void {
    if (this.#pausedAt === undefined) return
    this.excuse(performance.now() - this.#pausedAt)
    this.#pausedAt = undefined
    this.socket.resume()
  }

  /** Looks whether anything has come since the last look, if only the middle of a long message. It is heard since then. */
  look(lastLookAt: number): void {
    const { bytesRead } = this.#wire
    if (bytesRead === this.#bytesSeen) return
    this.#bytesSeen = bytesRead
    this.#receivedAt = Math.max(this.#receivedAt, lastLookAt)
  }

  /** Does not count this time as silence. */
  excuse(ms: number): void {
    this.#receivedAt += ms
  }

  /** For how long its peer has been silent; it must not be paused. */
  silentMs(now: number): number {
    return now - this.#receivedAt
  }

  #sent(): void {
    this.#waiting--
    // What waited was taken at last: it is slow, but it lives.
    this.received()
    this.onSent()
  }

  #beginBatch(): void {
    this.#batch = 1
    this.#wire.cork()
    process.nextTick(Peer.#endBatch, this)
  }

  /** Has the connection end as soon as what waits for its peer is sent, and reads nothing of it any more. */
  hangUp(): void {
    this.socket.pause()
    this.#wire.destroySoon()
  }

  static #endBatch(this: void, peer: Peer): void {
    if (peer.#batch === 0) return
    peer.#batch = 0
    peer.#wire.uncork()
  }
}
