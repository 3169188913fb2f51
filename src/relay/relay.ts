import { WebSocket, type RawData } from 'ws'
import type { Metrics } from '../measure.ts'
import { ENDINGS, fromBrowser, fromUpstream, fromViolation, GOING_AWAY, type Ending } from './close-codes.ts'
import { operationOf } from './operations.ts'
import { Side } from './side.ts'

/** Sizes and times of a relay (CONTRACT: relays). */
export interface RelayLimits {
  readonly maxBufferedBytes: number
  readonly slowConsumerMs: number
  /** Time between two pings. */
  readonly heartbeatMs?: number
}

/** What a relay works with. */
export interface RelayOptions {
  readonly limits: RelayLimits
  readonly metrics: Pick<Metrics, 'relayTraffic' | 'relayOperations'>
  /**
   * Called once, when nothing passes any more.
   * @param ending undefined: closed without a code
   * @param violation how upstream broke the protocol, where that was it
   */
  readonly onEnd: (ending: Ending | undefined, violation?: string) => void
}

const HEARTBEAT_MS = 25_000
/** A side that was silent for this many heartbeats is gone. */
const MAX_SILENT_BEATS = 2

const TEXT = { binary: false }
const BINARY = { binary: true }

type WebSocketError = Error & { readonly code?: string }

/**
 * Joins a browser's socket to an upstream one: messages pass in order and unchanged, both ways, until either side or
 * the server ends it. Where one side is slow the other is paused, so memory stays bounded.
 */
export class Relay {
  readonly #browser: Side
  readonly #upstream: Side
  readonly #limits: RelayLimits
  readonly #options: RelayOptions
  readonly #heartbeatMs: number
  #heartbeat: NodeJS.Timeout
  #slowTimer: NodeJS.Timeout | undefined
  #ended = false

  /** @param sockets both open; upstream's is paused */
  constructor(sockets: { browser: WebSocket; upstream: WebSocket }, options: RelayOptions) {
    this.#options = options
    this.#limits = options.limits
    this.#browser = new Side(sockets.browser)
    this.#upstream = new Side(sockets.upstream)
    this.#heartbeatMs = options.limits.heartbeatMs ?? HEARTBEAT_MS
    this.#heartbeat = this.#beatIn(this.#heartbeatMs)
    this.#wireBrowser()
    this.#wireUpstream()
    if (sockets.upstream.readyState === WebSocket.OPEN) sockets.upstream.resume()
    // Lost while the browser's handshake was under way: nobody was listening then.
    else this.end(ENDINGS.upstreamLost)
  }

  /** What waits in this process for its two peers. */
  get bufferedBytes(): number {
    return this.#browser.socket.bufferedAmount + this.#upstream.socket.bufferedAmount
  }

  /** Ends it from here. */
  end(ending: Ending): void {
    this.#finish(ending, GOING_AWAY)
  }

  #wireBrowser(): void {
    const side = this.#browser
    const { socket } = side
    const { relayOperations, relayTraffic } = this.#options.metrics
    const sent = (): void => this.#sent(side, this.#upstream)
    socket.on('message', (data, isBinary) => {
      if (!isBinary) relayOperations.inc({ operation: operationOf(data as Buffer) })
      this.#pass(side, this.#upstream, data as Buffer, isBinary, relayTraffic.to_upstream, sent)
    })
    // ws has told the browser what it did wrong.
    socket.on('error', ({ code }: WebSocketError) => this.#finish(fromViolation(code), GOING_AWAY))
    socket.on('close', (code, reason) => {
      this.#finish({ code, reason: reason.toString() }, fromBrowser(code, reason))
    })
  }

  #wireUpstream(): void {
    const side = this.#upstream
    const { socket } = side
    const { relayTraffic } = this.#options.metrics
    const sent = (): void => this.#sent(side, this.#browser)
    socket.on('message', (data, isBinary) => {
      this.#pass(side, this.#browser, data as Buffer, isBinary, relayTraffic.to_browser, sent)
    })
    // ws has told upstream what it did wrong; the browser did nothing.
    socket.on('error', ({ code, name }: WebSocketError) => {
      const isTooBig = fromViolation(code) === ENDINGS.tooBig
      this.#finish(isTooBig ? ENDINGS.tooBig : ENDINGS.upstreamLost, GOING_AWAY, code ?? name)
    })
    socket.on('close', (code, reason) => this.#finish(fromUpstream(code, reason), GOING_AWAY))
  }

  #pass(
    from: Side,
    to: Side,
    data: Exclude<RawData, Buffer[] | ArrayBuffer>,
    isBinary: boolean,
    traffic: { messages: number; bytes: number },
    sent: () => void,
  ): void {
    from.heard()
    if (this.#ended) return
    if (to.socket.readyState !== WebSocket.OPEN) return this.#tooLate(to)
    traffic.messages++
    traffic.bytes += data.length
    const { maxBufferedBytes } = this.#limits
    // Nearly always nothing waits, and nobody needs to hear that it was sent.
    if (to.socket.bufferedAmount === 0 && data.length <= maxBufferedBytes / 2) {
      return to.socket.send(data, isBinary ? BINARY : TEXT)
    }
    to.waitingMessages++
    to.socket.send(data, isBinary ? BINARY : TEXT, sent)
    if (to.waitingBytes > maxBufferedBytes && !from.isPaused) this.#pause(from)
  }

  /** The close frame of `to` has come, though not yet the end of its connection. */
  #tooLate(to: Side): void {
    // The page must hear at once that this message went nowhere: cut off, upstream's close is told with its code.
    if (to === this.#upstream) to.socket.terminate()
  }

  #pause(from: Side): void {
    from.pause()
    if (from !== this.#upstream) return
    this.#slowTimer = setTimeout(() => this.end(ENDINGS.slowConsumer), this.#limits.slowConsumerMs)
  }

  #sent(from: Side, to: Side): void {
    to.waitingMessages--
    if (this.#ended || !from.isPaused) return
    if (to.waitingBytes >= this.#limits.maxBufferedBytes / 2) return
    if (from === this.#upstream) clearTimeout(this.#slowTimer)
    from.resume()
  }

  #beatIn(ms: number): NodeJS.Timeout {
    const dueAt = performance.now() + ms
    return setTimeout(() => this.#beat(performance.now() - dueAt), ms)
  }

  /** @param lateMs for how long this process was held up: peers may have talked meanwhile without being heard */
  #beat(lateMs: number): void {
    const now = performance.now()
    const allowedMs = MAX_SILENT_BEATS * this.#heartbeatMs
    let nextMs = this.#heartbeatMs
    for (const side of [this.#browser, this.#upstream]) {
      side.excuse(lateMs)
      // It could not be heard, and its answers would only pile up.
      if (side.isPaused) continue
      const leftMs = allowedMs - side.silentMs(now)
      if (leftMs <= 0) return this.#gone(side)
      side.socket.ping()
      nextMs = Math.min(nextMs, Math.ceil(leftMs))
    }
    this.#heartbeat = this.#beatIn(nextMs)
  }

  #gone(side: Side): void {
    if (side === this.#upstream) this.end(ENDINGS.upstreamLost)
    // There is nobody to tell: its `close` event ends the relay.
    else side.socket.terminate()
  }

  /** The one way out. `toBrowser` and `toUpstream` are what each is told; undefined: a close frame without a code. */
  #finish(toBrowser: Ending | undefined, toUpstream: Ending | undefined, violation?: string): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#heartbeat)
    clearTimeout(this.#slowTimer)
    closeSocket(this.#browser.socket, toBrowser)
    closeSocket(this.#upstream.socket, toUpstream)
    this.#options.onEnd(toBrowser, violation)
  }
}

/**
 * Closes a socket. What was sent before still goes out first; a peer that does not take it, or does not answer the
 * close, is cut off by ws itself (see SOCKET_OPTIONS).
 */
export function closeSocket(socket: WebSocket, ending: Ending | undefined): void {
  // A paused socket would never read the peer's close frame.
  socket.resume()
  if (ending === undefined) socket.close()
  else if (socket.readyState === WebSocket.OPEN) socket.close(ending.code, ending.reason)
}
