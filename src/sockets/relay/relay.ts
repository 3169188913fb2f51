import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { Config } from '../../config/config.ts'
import { MAX_DEAF_MS } from '../../sessions/index.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { judgeAfter } from '../../time/judge-after.ts'
import { standstill } from '../../time/standstill.ts'
import { FirstByte } from '../../upstream/first-byte.ts'
import { BROWSER, CLOSE, UPSTREAM, type CloseStatus, type Ending } from '../close-codes.ts'
import { operationOf } from '../operations.ts'
import { SocketEnd, type OpenSocket } from '../socket-end.ts'
import type { WaitingBytes } from '../waiting-bytes.ts'
import type { OrderGate } from './order-gate.ts'
import type { RelayUser } from './relay-user.ts'

/** Before ws cuts off an upstream that does not read (closeTimeout), after which the kernel would go on sending. */
const REST_MS = 9000
/** The same where the session has ended, and the time that upstream has to answer a ping when orders are paused. */
const DOUBT_MS = 1000

interface RelayOptions {
  /** See docs/reference.md, Sockets. */
  readonly limits: Pick<Config['relay'], 'maxBufferedBytes' | 'slowConsumerMs'> & { readonly heartbeatMs?: number }
  readonly metrics: Pick<Metrics, 'relayTraffic' | 'countRelayOperation'>
  /** Absent where nothing bounds the waiting bytes of the process. */
  readonly waiting?: WaitingBytes
  /** Absent without a session. */
  readonly user?: RelayUser | undefined
  /** Absent where orders cannot be paused. */
  readonly gate?: OrderGate | undefined
  /** Adds to a close when the page may come back. */
  readonly withReturn?: ((close: CloseStatus) => CloseStatus) | undefined
  /** Called after the relay has ended, while upstream is still connected. `cut` resets the connection, so that it gets no more. */
  readonly rest?: (wire: Socket, cut: () => void) => void
  /**
   * Called once, when the relay ends.
   * @param close what the browser gets
   * @param fault how upstream broke the protocol, if that ended the relay
   */
  readonly onEnd: (close: CloseStatus, fault?: string) => void
}

/**
 * Joins a browser's socket to an upstream one. Messages pass both ways, in order and unchanged, until either peer or the server
 * ends the relay. While one peer is slow the other is paused, so memory stays bounded.
 */
export class Relay {
  readonly #browser: SocketEnd
  readonly #upstream: SocketEnd
  readonly #limits: RelayOptions['limits']
  readonly #options: RelayOptions
  /** Ends the time that a slow browser has. */
  #endSlowness: (() => void) | undefined
  /** Messages of the browser that wait to be judged; undefined while each is judged at once. */
  #held: (readonly [Buffer, boolean])[] | undefined
  /** Asked for each message of the browser, and again when it has waited for whatever reason. */
  readonly #firstByte: FirstByte
  /** The store is away, and the session may have ended without a word, but what is judged now passes all the same. */
  #isExcused = false
  /** Since when the messages wait to learn whether the session is live (ms of the clock of {@link standstill}). */
  #unknownSince: number | undefined
  /** Whether these messages wait because the browser does not read its refusals. */
  #isRefusing = false
  /** Ends a relay that the browser has ended, once the messages that it sent before are judged. */
  #finishLast: (() => void) | undefined
  /** Ends the time in which upstream is to show, since orders are paused, that it has read all. */
  #endDoubt: (() => void) | undefined
  #ended = false
  readonly #leaveGate: (() => void) | undefined

  /** @param upstream is paused */
  constructor(browser: OpenSocket, upstream: OpenSocket, options: RelayOptions) {
    this.#options = options
    this.#limits = options.limits
    const { user, gate } = options
    this.#firstByte = new FirstByte({
      session: user && (() => this.#isExcused || user.isCurrent()),
      orders: gate && (() => !gate.isClosed),
    })
    this.#browser = this.#listenToBrowser(browser)
    this.#upstream = this.#listenToUpstream(upstream)
    this.#leaveGate = gate?.onClosed(() => this.#withdraw())
    this.#upstream.begin()
  }

  /** Bytes that wait in this process for the two peers, or to be sent on to them. */
  get waitingBytes(): number {
    return this.#browser.heldBytes + this.#upstream.heldBytes
  }

  end(close: CloseStatus): void {
    if (isOfSession(close) && this.#upstream.isUnanswered) this.#upstream.cut()
    this.#finish(close)
  }

  #listenToBrowser(connection: OpenSocket): SocketEnd {
    const { metrics, limits, waiting } = this.#options
    const message = (data: Buffer, isBinary: boolean): void => {
      if (!isBinary) metrics.countRelayOperation(operationOf(data))
      this.#judge(data, isBinary)
    }
    const ended = ({ own, other }: Ending): void => {
      if (this.#held === undefined) return this.#finish(own, other)
      this.#finishLast = () => this.#finish(own, other)
      // It reads no more refusals.
      if (this.#isRefusing) this.#judgeHeld()
    }
    const end = new SocketEnd(connection, BROWSER, { message, ended, waiting }, limits.heartbeatMs)
    end.onSent = () => {
      this.#relieve()
      this.#readOn()
    }
    return end
  }

  #listenToUpstream(connection: OpenSocket): SocketEnd {
    const { metrics, limits, waiting } = this.#options
    const { to_browser: traffic } = metrics.relayTraffic
    const message = (data: Buffer, isBinary: boolean): void => {
      this.#pass(this.#upstream, this.#browser, data, isBinary, traffic)
    }
    const ended = ({ own, other, isFault, why }: Ending): void => this.#finish(other, own, isFault && why)
    const end = new SocketEnd(connection, UPSTREAM, { message, ended, waiting }, limits.heartbeatMs)
    end.onSent = () => this.#readOn()
    return end
  }

  #pass(
    from: SocketEnd,
    to: SocketEnd,
    message: Buffer,
    isBinary: boolean,
    traffic: { messages: number; bytes: number },
  ): void {
    // A peer that is closing has had its close sent on to the other; messages after that are dropped.
    if (this.#ended || to.socket.readyState !== WebSocket.OPEN) return
    traffic.messages++
    traffic.bytes += message.length
    const { maxBufferedBytes } = this.#limits
    const isWatched = to.send(message, isBinary, maxBufferedBytes / 2)
    if (isWatched && to.waitingBytes > this.#mostBytes && !from.isPaused) this.#pause(from)
  }

  get #mostBytes(): number {
    const { maxBufferedBytes } = this.#limits
    return this.#options.waiting?.mostOf(maxBufferedBytes) ?? maxBufferedBytes
  }

  /** Sends a message of the browser on, refuses it, or holds it and all that follow. */
  #judge(message: Buffer, isBinary: boolean): void {
    const { user, gate, metrics } = this.#options
    if (this.#ended) return
    if (this.#held !== undefined) return void this.#held.push([message, isBinary])
    const refusal = this.#firstByte.refusal()
    if (user !== undefined && refusal?.is === 'stale' && refusal.why === 'session') {
      return this.#hold(message, isBinary, this.#confirm(user))
    }
    this.#unknownSince = undefined
    // Nothing is read of a message while no orders are paused.
    const passage = refusal === undefined ? 'passes' : (gate?.judge(message, isBinary) ?? 'passes')
    if (passage === 'passes') {
      return this.#pass(this.#browser, this.#upstream, message, isBinary, metrics.relayTraffic.to_upstream)
    }
    if (Buffer.isBuffer(passage)) return this.#refuse(passage)
    this.#hold(message, isBinary, passage)
  }

  /**
   * Asks whether the session is live: the news that it has ended may be on its way. If this process cannot hear, or not in time,
   * what waits is discarded with the relay.
   */
  async #confirm(user: RelayUser): Promise<void> {
    const now = standstill.now()
    this.#unknownSince ??= now
    const confirmation = now - this.#unknownSince > MAX_DEAF_MS ? 'deaf' : await user.confirm()
    if (confirmation === 'deaf') this.end(CLOSE.storeDown)
    this.#isExcused = confirmation === 'away'
  }

  /** Keeps a message, and all that follow, until more is known. */
  #hold(message: Buffer, isBinary: boolean, known: Promise<void>): void {
    this.#held = [[message, isBinary]]
    this.#browser.pause()
    void known.then(() => this.#judgeHeld())
  }

  #judgeHeld(): void {
    const held = this.#held ?? []
    this.#held = undefined
    this.#isRefusing = false
    for (const [message, isBinary] of held) this.#judge(message, isBinary)
    this.#isExcused = false
    if (this.#held === undefined) this.#finishLast?.()
    this.#readOn()
  }

  /** Answers a message that does not pass. A browser that does not read its refusals is read no further. */
  #refuse(refusal: Buffer): void {
    const { maxBufferedBytes } = this.#limits
    if (this.#browser.socket.readyState !== WebSocket.OPEN) return
    const isWatched = this.#browser.send(refusal, false, maxBufferedBytes / 2)
    if (!isWatched || this.#browser.waitingBytes <= maxBufferedBytes) return
    // Messages that were read together with this one would be refused, too.
    this.#held = []
    this.#isRefusing = true
    this.#browser.pause()
    if (!this.#upstream.isPaused) this.#pause(this.#upstream)
  }

  /** Ends the relay if an order may wait because upstream does not read: it must not leave once orders are paused. */
  #withdraw(): void {
    const { gate } = this.#options
    const upstream = this.#upstream
    const { bufferedBytes, sentCount, wire } = upstream
    if (wire.destroyed || gate?.isClosed !== true) return
    // No page has this relay any more, so its end costs nobody a socket.
    if (this.#ended) return upstream.cut()
    if (bufferedBytes > 0) return this.#giveUp()
    this.#endDoubt?.()
    if (upstream.readCount >= sentCount) return
    // The kernel may have an order, too. Upstream's pong comes once it has read that. What passes in a pause may be on its way.
    upstream.ping()
    this.#endDoubt = judgeAfter(DOUBT_MS, () => gate.isClosed && upstream.readCount < sentCount && this.#giveUp())
  }

  /** Sends upstream nothing of what it may not have read. A close frame would follow all of that. */
  #giveUp(): void {
    this.#upstream.cut()
    this.end(CLOSE.upstreamLost)
  }

  #pause(from: SocketEnd): void {
    from.pause()
    if (from !== this.#upstream) return
    this.#endSlowness = judgeAfter(this.#limits.slowConsumerMs, () => this.end(CLOSE.slowConsumer))
  }

  /** Reads on from upstream once the browser has read enough. */
  #relieve(): void {
    if (this.#ended || !this.#upstream.isPaused) return
    if (this.#browser.waitingBytes >= this.#limits.maxBufferedBytes / 2) return
    this.#endSlowness?.()
    this.#upstream.resume()
  }

  /** Reads on from the browser once upstream, and of its refusals the browser itself, have read enough. */
  #readOn(): void {
    if (this.#ended || !this.#browser.isPaused) return
    const half = this.#limits.maxBufferedBytes / 2
    if (this.#isRefusing && this.#browser.waitingBytes < half) return this.#judgeHeld()
    if (this.#held === undefined && this.#upstream.waitingBytes < half) this.#browser.resume()
  }

  /** The only way a relay ends. The codes of each way are those of {@link BROWSER}, {@link UPSTREAM} and {@link CLOSE}. */
  #finish(toBrowser: CloseStatus, toUpstream?: CloseStatus, fault?: string): void {
    if (this.#ended) return
    this.#ended = true
    this.#endSlowness?.()
    this.#endDoubt?.()
    const { withReturn, onEnd } = this.#options
    try {
      this.#browser.close(withReturn?.(toBrowser) ?? toBrowser)
    } finally {
      // Whatever fails, upstream gets nothing more, and the permits are free.
      this.#upstream.close(toUpstream)
      this.#watchRest(isOfSession(toBrowser))
      onEnd(toBrowser, fault)
    }
  }

  /**
   * What still waits for upstream must not leave either once the session has ended or orders are paused, nor much later. Only its
   * answer to the close frame, with which its connection closes, shows that it has read all.
   */
  #watchRest(isSessionOver: boolean): void {
    const { wire } = this.#upstream
    if (wire.destroyed) return this.#leaveGate?.()
    const { user, rest } = this.#options
    const cut = (): void => this.#upstream.cut()
    // Not judgeAfter(): after a standstill ws would be first.
    const limit = setTimeout(cut, isSessionOver ? DOUBT_MS : REST_MS).unref()
    const endWatch = isSessionOver ? undefined : user?.onEnd(cut)
    rest?.(wire, cut)
    wire.once('close', () => {
      clearTimeout(limit)
      endWatch?.()
      this.#leaveGate?.()
    })
  }
}

/** Whether a relay ends because its session has, or may have. */
function isOfSession(close: CloseStatus): boolean {
  return close === CLOSE.sessionExpired || close === CLOSE.storeDown
}
