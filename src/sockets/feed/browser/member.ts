import {
  CLOSE,
  closeSocket,
  fromBrowser,
  fromViolation,
  GOING_AWAY,
  POLICY_VIOLATION,
  type CloseStatus,
} from '../../close-codes.ts'
import { Heartbeat } from '../../heartbeat.ts'
import { Peer, type PeerConnection } from '../../peer.ts'
import type { Registered } from '../../registry.ts'
import type { OwnSocket } from './own-socket.ts'
import { Outbox, unwatchedBytes, type OutboxHost } from './outbox.ts'
import { Pace, expectAnswer } from './pace.ts'

/** Sizes, times and numbers of a browser's socket (docs/reference.md, Shared market data). */
export interface MemberLimits {
  readonly maxBufferedBytes: number
  readonly slowConsumerMs: number
  readonly conflateBytes: number
  readonly requestsPerMinute: number
  /** Time between two pings. */
  readonly heartbeatMs?: number | undefined
}

/** What the browsers of a feed have in common. */
export interface MemberHost extends OutboxHost {
  readonly limits: MemberLimits
  /** A browser has sent a message. */
  received(member: Member, message: Buffer, isBinary: boolean): void
  /** A browser is gone, or about to go. */
  left(member: Member): void
}

/** A request that upstream has not answered after this time will hardly be answered at all. */
const HOLD_MS = 10_000

/**
 * A browser's socket. Nothing is read from it while too much waits to be sent to it, or while too many of its requests wait for
 * their answers.
 */
export class Member implements Registered {
  /** The upstream socket for what cannot be shared. */
  own: OwnSocket | undefined
  /** What is sent to it. */
  readonly outbox: Outbox
  /** The address of the browser. */
  readonly address: string
  readonly #peer: Peer
  readonly #host: MemberHost
  readonly #onEnd: (close: CloseStatus | undefined) => void
  readonly #heartbeat: Heartbeat
  readonly #pace: Pace
  /** Bytes of the requests that wait for an answer. */
  #askedBytes = 0
  #slowTimer: NodeJS.Timeout | undefined
  /** Runs while later messages wait for an answer. */
  #hold: NodeJS.Timeout | undefined
  /** Messages that had been read when reading stopped. */
  #unread: (readonly [Buffer, boolean])[] = []
  /** True while these are taken, so that nothing that they cause takes the next one. */
  #isTaking = false
  #isOver = false

  /** @param onEnd called once; undefined stands for a close frame without a code */
  constructor(
    browser: PeerConnection,
    address: string,
    host: MemberHost,
    onEnd: (close: CloseStatus | undefined) => void,
  ) {
    this.address = address
    this.#peer = new Peer(browser, false)
    this.#host = host
    this.#onEnd = onEnd
    this.outbox = new Outbox(this.#peer, host, this)
    this.#pace = new Pace(host.limits.requestsPerMinute)
    this.#heartbeat = new Heartbeat([this.#peer], ({ socket }) => socket.terminate(), host.limits.heartbeatMs)
    this.#peer.onSent = () => this.#sent()
    this.#listen()
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Bytes that wait in this process for the browser and on its own upstream socket. */
  get bufferedBytes(): number {
    return this.#peer.bufferedBytes + (this.own?.bufferedBytes ?? 0)
  }

  /** Counts a request that goes upstream for this browser. False when it exceeds the limit of this minute. */
  spend(): boolean {
    return this.#pace.spend()
  }

  /** Sends a frame that must not be lost. @param rest the end of the frame, if others get it too */
  answer(frame: Buffer, rest?: Buffer): void {
    this.outbox.answer(frame, rest)
  }

  /** Sends a message of the own upstream socket as it is. */
  pass(message: Buffer, isBinary: boolean): void {
    const { traffic } = this.#host
    traffic.messages++
    traffic.bytes += message.length
    this.#peer.send(message, isBinary, unwatchedBytes(this.#host.limits))
    this.press()
  }

  /** Sends the message of a stream that waits for a slow browser, before something that must come after it. */
  sendConflated(stream: string): void {
    this.outbox.sendConflated(stream)
  }

  /** Notes that a request waits for its answer, and how many bytes of memory that takes. */
  awaits(bytes: number): void {
    this.#askedBytes += bytes
    this.press()
  }

  /** Notes that such a request waits no more. */
  awaitsNoMore(bytes: number): void {
    this.#askedBytes -= bytes
    // Not at once: the next request may have the same answer, which those that have waited for it get first.
    if (this.#peer.isPaused) queueMicrotask(() => this.relieve())
  }

  expectAnswer(): () => void {
    return expectAnswer(this)
  }

  /**
   * Takes no further message for now, so that none is answered before the present one.
   * @param longestMs after this time messages are taken in any case
   * @returns a function that ends the wait
   */
  hold(longestMs = HOLD_MS): () => void {
    const release = (): void => {
      if (this.#hold !== hold) return
      clearTimeout(hold)
      this.#hold = undefined
      this.relieve()
    }
    const hold = setTimeout(release, longestMs).unref()
    this.#hold = hold
    return release
  }

  /** Notes that more may wait now, and stops reading if it is too much. */
  press(): void {
    if (this.#isOver) return
    const { maxBufferedBytes, slowConsumerMs } = this.#host.limits
    const { waitingBytes } = this.#peer
    if (waitingBytes > maxBufferedBytes) {
      this.#slowTimer ??= setTimeout(() => this.end(CLOSE.slowConsumer), slowConsumerMs)
      this.own?.pause()
    }
    if (waitingBytes + this.#askedBytes > maxBufferedBytes || this.own?.isFull === true) this.#peer.pause()
  }

  /** Notes that less may wait now, and reads on unless something still forbids it. */
  relieve(): void {
    if (this.#isOver) return
    const half = this.#host.limits.maxBufferedBytes / 2
    const { waitingBytes } = this.#peer
    if (waitingBytes < half) {
      clearTimeout(this.#slowTimer)
      this.#slowTimer = undefined
      this.own?.resume()
    }
    if (this.#peer.isPaused && !this.#isTaking) this.#readOn()
  }

  end(close: CloseStatus | undefined): void {
    this.#finish(close, GOING_AWAY)
  }

  #listen(): void {
    this.#peer.listen({
      message: (message, isBinary) => {
        if (this.#isOver) return
        if (this.#hold !== undefined) this.#peer.pause()
        // These were read together with the one after which reading has stopped.
        if (this.#peer.isPaused) this.#unread.push([message, isBinary])
        else this.#take(message, isBinary)
      },
      error: ({ code }) => this.end(fromViolation(code)),
      closed: (code, reason) => this.#finish({ code, reason: reason.toString() }, fromBrowser(code, reason)),
      tooManyControls: () => this.end(POLICY_VIOLATION),
    })
  }

  #take(message: Buffer, isBinary: boolean): void {
    if (!this.#pace.received(() => this.relieve())) this.#peer.pause()
    this.#host.received(this, message, isBinary)
  }

  #readOn(): void {
    this.#isTaking = true
    while (!this.#isBusy) {
      const next = this.#unread.shift()
      if (next === undefined) {
        this.#peer.resume()
        break
      }
      this.#take(...next)
    }
    this.#isTaking = false
  }

  /** Whether nothing more may be read from the browser for now. */
  get #isBusy(): boolean {
    const waitingBytes = this.#peer.waitingBytes + this.#askedBytes
    const isFull = waitingBytes >= this.#host.limits.maxBufferedBytes / 2 || this.own?.isFull === true
    return isFull || this.#pace.isExceeded || this.#hold !== undefined
  }

  #sent(): void {
    if (this.#isOver) return
    this.outbox.relieve()
    this.relieve()
  }

  /** The only way it ends. */
  #finish(toBrowser: CloseStatus | undefined, toUpstream: CloseStatus | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#heartbeat.stop()
    this.#pace.stop()
    clearTimeout(this.#slowTimer)
    clearTimeout(this.#hold)
    this.own?.end(toUpstream)
    this.outbox.close()
    this.#unread = []
    this.#host.left(this)
    closeSocket(this.#peer.socket, toBrowser)
    this.#onEnd(toBrowser)
  }
}
