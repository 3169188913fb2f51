import { WebSocket } from 'ws'
import type { Metrics } from '../../telemetry/metrics.ts'
import {
  CLOSE,
  fromBrowser,
  fromUpstream,
  fromViolation,
  GOING_AWAY,
  TOO_MANY_PIECES,
  type CloseStatus,
} from '../close-codes.ts'
import { operationOf } from './operations.ts'
import { onPeerClose } from '../receiver.ts'
import { Peer, type PeerConnection } from '../peer.ts'

/** Sizes and times of a relay (docs/reference.md, Sockets). */
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
   * @param close undefined: closed without a code
   * @param violation how upstream broke the protocol, where that was it
   */
  readonly onEnd: (close: CloseStatus | undefined, violation?: string) => void
}

/**
 * Pings are the protocol's own. One of upstream's operation `ping` would have an answer that cannot be
 * told from the answer to the page's own, and would reach the page.
 */
const HEARTBEAT_MS = 25_000
/** A peer that was silent for this many heartbeats is gone. */
const MAX_SILENT_BEATS = 2

type WebSocketError = Error & { readonly code?: string }

/**
 * Joins a browser's socket to an upstream one: messages pass in order and unchanged, both ways, until either peer or
 * the server ends it. Where one peer is slow the other is paused, so memory stays bounded.
 */
export class Relay {
  readonly #browser: Peer
  readonly #upstream: Peer
  readonly #limits: RelayLimits
  readonly #options: RelayOptions
  readonly #heartbeatMs: number
  #heartbeat: NodeJS.Timeout
  #beatAt = performance.now()
  #slowTimer: NodeJS.Timeout | undefined
  #ended = false

  /** @param connections both open; upstream's is paused */
  constructor(connections: { browser: PeerConnection; upstream: PeerConnection }, options: RelayOptions) {
    this.#options = options
    this.#limits = options.limits
    this.#browser = new Peer(connections.browser, false)
    this.#upstream = new Peer(connections.upstream, true)
    this.#heartbeatMs = options.limits.heartbeatMs ?? HEARTBEAT_MS
    this.#heartbeat = this.#beatIn(this.#heartbeatMs)
    this.#browser.onSent = () => this.#sent(this.#upstream, this.#browser)
    this.#upstream.onSent = () => this.#sent(this.#browser, this.#upstream)
    this.#wireBrowser()
    this.#wireUpstream()
    const { socket } = connections.upstream
    if (socket.readyState === WebSocket.OPEN) socket.resume()
    // Lost while the browser's handshake was under way: nobody was listening then.
    else this.end(CLOSE.upstreamLost)
  }

  /** What waits in this process for its two peers. */
  get bufferedBytes(): number {
    return this.#browser.bufferedBytes + this.#upstream.bufferedBytes
  }

  /** Ends it from here. */
  end(close: CloseStatus): void {
    this.#finish(close, GOING_AWAY)
  }

  #wireBrowser(): void {
    const { socket } = this.#browser
    const { relayOperations, relayTraffic } = this.#options.metrics
    socket.on('message', (data, isBinary) => {
      if (!isBinary) {
        const operation = operationOf(data as Buffer)
        relayOperations.set(operation, (relayOperations.get(operation) ?? 0) + 1)
      }
      this.#pass(this.#browser, this.#upstream, data as Buffer, isBinary, relayTraffic.to_upstream)
    })
    // ws has told the browser what it did wrong.
    socket.on('error', ({ code }: WebSocketError) => this.#finish(fromViolation(code), GOING_AWAY))
    onPeerClose(socket, (code, reason) =>
      this.#finish({ code, reason: reason.toString() }, fromBrowser(code, reason)),
    )
    this.#wireControl(this.#browser, () => this.#finish(TOO_MANY_PIECES, GOING_AWAY))
  }

  #wireUpstream(): void {
    const { socket } = this.#upstream
    const { relayTraffic } = this.#options.metrics
    socket.on('message', (data, isBinary) => {
      this.#pass(this.#upstream, this.#browser, data as Buffer, isBinary, relayTraffic.to_browser)
    })
    // ws has told upstream what it did wrong; the browser did nothing.
    socket.on('error', ({ code, name }: WebSocketError) => {
      const isTooBig = fromViolation(code) === CLOSE.tooBig
      this.#finish(isTooBig ? CLOSE.tooBig : CLOSE.upstreamLost, GOING_AWAY, code ?? name)
    })
    onPeerClose(socket, (code, reason) => this.#finish(fromUpstream(code, reason), GOING_AWAY))
    this.#wireControl(this.#upstream, () =>
      this.#finish(CLOSE.upstreamLost, TOO_MANY_PIECES, 'control frames in the middle of a message'),
    )
  }

  #wireControl(peer: Peer, tooMany: () => void): void {
    const received = (data: Buffer): void => {
      if (this.#ended || peer.receivedControl(data)) return
      tooMany()
      peer.hangUp()
    }
    peer.socket.on('pong', received)
    peer.socket.on('ping', (data: Buffer) => {
      received(data)
      peer.pong(data)
    })
  }

  #pass(
    from: Peer,
    to: Peer,
    message: Buffer,
    isBinary: boolean,
    traffic: { messages: number; bytes: number },
  ): void {
    from.receivedMessage()
    // One that is on its way out has had its end told to the other: what still comes is answered by that.
    if (this.#ended || to.socket.readyState !== WebSocket.OPEN) return
    traffic.messages++
    traffic.bytes += message.length
    const { maxBufferedBytes } = this.#limits
    const isWatched = to.send(message, isBinary, maxBufferedBytes / 2)
    if (isWatched && to.waitingBytes > maxBufferedBytes && !from.isPaused) this.#pause(from)
  }

  #pause(from: Peer): void {
    from.pause()
    if (from !== this.#upstream) return
    this.#slowTimer = setTimeout(() => this.end(CLOSE.slowConsumer), this.#limits.slowConsumerMs)
  }

  #sent(from: Peer, to: Peer): void {
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
    for (const peer of [this.#browser, this.#upstream]) {
      peer.look(this.#beatAt)
      peer.excuse(lateMs)
      // It could not be heard, and its answers would only pile up.
      if (peer.isPaused) continue
      const leftMs = allowedMs - peer.silentMs(now)
      if (leftMs <= 0) return this.#gone(peer)
      peer.socket.ping()
      nextMs = Math.min(nextMs, Math.ceil(leftMs))
    }
    this.#beatAt = now
    this.#heartbeat = this.#beatIn(nextMs)
  }

  #gone(peer: Peer): void {
    if (peer === this.#upstream) this.end(CLOSE.upstreamLost)
    // There is nobody to tell: its `close` event ends the relay.
    else peer.socket.terminate()
  }

  /** The one way out. `toBrowser` and `toUpstream` are what each is told; undefined: a close frame without a code. */
  #finish(toBrowser: CloseStatus | undefined, toUpstream: CloseStatus | undefined, violation?: string): void {
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
export function closeSocket(socket: WebSocket, close: CloseStatus | undefined): void {
  // A paused socket would never read the peer's close frame.
  socket.resume()
  if (close === undefined) socket.close()
  else if (socket.readyState === WebSocket.OPEN) socket.close(close.code, close.reason)
}
