import { BROWSER, CLOSE, type CloseStatus } from '../../close-codes.ts'
import { SocketEnd, type OpenSocket } from '../../socket-end.ts'
import type { OwnSocket } from './own-socket.ts'
import { Awaited } from './awaited.ts'
import { Outbox, type MemberHost } from './outbox.ts'
import { judgeAfter } from '../../../time/judge-after.ts'
import { Window } from '../../../time/window.ts'

/** What a member reports to the feed. */
interface MemberEvents {
  readonly message: (message: Buffer, isBinary: boolean) => void
  /** The browser is gone, or about to go. Called once. */
  readonly end: (close: CloseStatus) => void
}

/** More messages in a second than any page sends. A browser that sends more is read no faster, so that others have their turn. */
const MESSAGES_PER_SECOND = 200
/** A request that upstream has not answered after this time will hardly be answered at all. */
const HOLD_MS = 10_000
/** More than any limit: while this is awaited, nothing is read. */
const EVERYTHING = 2 ** 48
/**
 * What an answer counts whose size is not known yet: a long history has as much. The shared connection cannot be paused for one
 * browser, so everything that the browser has asked for arrives, whether it reads or not.
 */
const ANSWER_BYTES = 131_072
/** An upstream that is slower sends no flood. Other messages of the browser, its pings above all, must not wait for it. */
const ANSWER_MS = 3000
/** As long as a heartbeat waits for a pong. A paused browser gets no heartbeat, so nothing else would notice that it is gone. */
const STALLED_MS = 50_000

/**
 * A browser's socket, which its streams see as a `Browser`. Nothing is read from it while too much waits to be sent to it, or while
 * too many of its requests wait for their answers.
 */
export class Member {
  /** The upstream socket for requests that cannot be shared. */
  own: OwnSocket | undefined
  /** The messages for the browser. */
  readonly outbox: Outbox
  readonly address: string
  hasMissed = false
  readonly #end: SocketEnd
  readonly #host: MemberHost
  readonly #events: MemberEvents
  /** Messages of the browser. */
  readonly #second = new Window(1000)
  /** Requests of the browser that go upstream. */
  readonly #minute = new Window(60_000)
  readonly #awaited: Awaited
  /** Ends the time that a slow browser has. */
  #slow: (() => void) | undefined
  /** Runs while nothing is read from the browser, from its last message on. */
  #stalled: NodeJS.Timeout | undefined
  /** Runs once the browser is to be closed soon. */
  #departure: NodeJS.Timeout | undefined
  /** Messages that had been read when reading stopped. */
  #unread: (readonly [Buffer, boolean])[] = []
  /** True while these are taken, so that nothing that they cause takes the next one. */
  #isTaking = false
  #isOver = false

  constructor(browser: OpenSocket, address: string, host: MemberHost, events: MemberEvents) {
    this.address = address
    this.#host = host
    this.#events = events
    this.#end = new SocketEnd(browser, BROWSER, {
      message: (message, isBinary) => {
        // These were read together with the one after which reading has stopped.
        if (this.#end.isPaused) this.#unread.push([message, isBinary])
        else this.#take(message, isBinary)
      },
      ended: ({ own, other }) => this.#finish(own, other),
      waiting: host.waiting,
    })
    this.#end.onSent = () => this.#sent()
    this.outbox = new Outbox(this.#end, host, () => this.press())
    this.#awaited = new Awaited(
      () => this.press(),
      // Not at once: the next request may have the same answer, which the browsers that have waited for it get first.
      () => {
        if (this.#end.isPaused) queueMicrotask(() => this.relieve())
      },
    )
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get isWaiting(): boolean {
    return this.#awaited.bytes > 0
  }

  /** Bytes that wait in this process for the browser and on its own upstream socket. */
  get waitingBytes(): number {
    return this.#end.heldBytes + this.outbox.conflatedBytes + (this.own?.waitingBytes ?? 0)
  }

  spend(): boolean {
    return this.#minute.allows(this.#host.limits.requestsPerMinute)
  }

  /** Sends a message of the own upstream socket as it is. */
  pass(message: Buffer, isBinary: boolean): void {
    this.outbox.pass(message, isBinary)
    this.press()
  }

  awaits(bytes: number): () => void {
    return this.#awaited.add(bytes)
  }

  expectAnswer(): () => void {
    return this.#awaited.add(ANSWER_BYTES, ANSWER_MS)
  }

  /**
   * Takes no further message for now, so that none is answered before the present one.
   * @param longestMs after this time messages are taken in any case
   * @returns a function that ends the wait
   */
  hold(longestMs = HOLD_MS): () => void {
    return this.#awaited.add(EVERYTHING, longestMs)
  }

  /** Notes that more may wait now, and stops reading if it is too much. */
  press(): void {
    if (this.#isOver) return
    const { maxBufferedBytes, slowConsumerMs } = this.#host.limits
    const { waitingBytes } = this.#end
    if (waitingBytes > maxBufferedBytes) {
      this.#watchSlowness()
      this.own?.pause()
    }
    if (waitingBytes + this.#awaited.bytes > maxBufferedBytes || this.own?.isFull === true) {
      this.#end.pause()
      this.#stalled ??= this.#endAfter(slowConsumerMs + STALLED_MS, CLOSE.upstreamLost)
    }
  }

  /** Notes that less may wait now, and reads on unless something still forbids it. */
  relieve(): void {
    if (this.#isOver) return
    const half = this.#host.limits.maxBufferedBytes / 2
    const { waitingBytes } = this.#end
    if (waitingBytes < half) {
      this.#slow?.()
      this.#slow = undefined
      this.own?.resume()
    } else if (this.#end.isPaused) this.#watchSlowness()
    if (this.#end.isPaused && !this.#isTaking) this.#readOn()
  }

  end(close: CloseStatus): void {
    this.#finish(close)
  }

  /** Ends it after this time. Once is enough: a second call changes nothing. */
  endLater(close: CloseStatus, ms: number): void {
    if (!this.#isOver) this.#departure ??= this.#endAfter(ms, close)
  }

  #take(message: Buffer, isBinary: boolean): void {
    this.#stalled?.refresh()
    if (!this.#second.allows(MESSAGES_PER_SECOND)) this.hold(this.#second.leftMs)
    this.#events.message(message, isBinary)
  }

  #readOn(): void {
    this.#isTaking = true
    while (!this.#isBusy) {
      const next = this.#unread.shift()
      if (next === undefined) {
        clearTimeout(this.#stalled)
        this.#stalled = undefined
        this.#end.resume()
        break
      }
      this.#take(...next)
    }
    this.#isTaking = false
  }

  /** Whether nothing more may be read from the browser for now. */
  get #isBusy(): boolean {
    const waitingBytes = this.#end.waitingBytes + this.#awaited.bytes
    return waitingBytes >= this.#host.limits.maxBufferedBytes / 2 || this.own?.isFull === true
  }

  /** From now on the browser has its time to read down to half of the limit. */
  #watchSlowness(): void {
    this.#slow ??= judgeAfter(this.#host.limits.slowConsumerMs, () => this.end(CLOSE.slowConsumer), false)
  }

  #endAfter(ms: number, close: CloseStatus): NodeJS.Timeout {
    return setTimeout(() => this.end(close), ms).unref()
  }

  #sent(): void {
    if (this.#isOver) return
    this.outbox.relieve()
    this.relieve()
  }

  /** The only way it ends. */
  #finish(toBrowser: CloseStatus, toUpstream?: CloseStatus): void {
    if (this.#isOver) return
    this.#isOver = true
    try {
      this.#awaited.end()
      this.#slow?.()
      clearTimeout(this.#stalled)
      clearTimeout(this.#departure)
      this.own?.end(toUpstream)
      this.outbox.end()
      this.#unread = []
      this.#end.close(toBrowser)
    } finally {
      this.#events.end(toBrowser)
    }
  }
}
