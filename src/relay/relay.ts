import { WebSocket, type RawData } from 'ws'
import type { Metrics } from '../measure.ts'
import { ENDINGS, fromBrowser, fromUpstream, type Ending } from './close-codes.ts'
import { operationOf } from './operations.ts'

/** Sizes and times of a relay (CONTRACT: relays). */
export interface RelayLimits {
  readonly maxBufferedBytes: number
  readonly slowConsumerMs: number
}

/** What a relay is seen as in the metrics. */
export type RelayKind = 'public' | 'demo' | 'real' | 'trading'

const HEARTBEAT_MS = 25_000
/** A side that has said nothing for this many heartbeats is gone. */
const MAX_MISSED = 2
/** How long a peer may take to answer a close frame. */
const CLOSE_MS = 5_000

type Direction = 'to_browser' | 'to_upstream'

/** One end of a relay. */
interface Side {
  readonly socket: WebSocket
  missed: number
  paused: boolean
}

/**
 * Joins a browser's socket to an upstream one: messages pass in order and unchanged, both ways, until either side or
 * the server ends it. Where one side is slow the other is paused, so memory stays bounded.
 */
export class Relay {
  readonly kind: RelayKind
  readonly #browser: Side
  readonly #upstream: Side
  readonly #limits: RelayLimits
  readonly #metrics: Metrics
  readonly #onEnd: (ending: Ending | undefined) => void
  readonly #heartbeat: NodeJS.Timeout
  #slowTimer: NodeJS.Timeout | undefined
  #ended = false
  #counts = { to_browser: 0, to_upstream: 0 }

  /**
   * @param upstream open and paused
   * @param onEnd called once, when nothing passes any more; undefined: closed without a code
   */
  constructor(
    sockets: { browser: WebSocket; upstream: WebSocket },
    options: {
      kind: RelayKind
      limits: RelayLimits
      metrics: Metrics
      onEnd: (ending: Ending | undefined) => void
    },
  ) {
    this.kind = options.kind
    this.#limits = options.limits
    this.#metrics = options.metrics
    this.#onEnd = options.onEnd
    this.#browser = { socket: sockets.browser, missed: 0, paused: false }
    this.#upstream = { socket: sockets.upstream, missed: 0, paused: false }
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS)
    this.#heartbeat.unref()
    this.#wireBrowser()
    this.#wireUpstream()
    if (this.#upstream.socket.readyState === WebSocket.OPEN) this.#upstream.socket.resume()
    // Lost while the browser's handshake was under way: nobody was listening then.
    else this.end(ENDINGS.upstreamLost)
  }

  /** Ends it from here. */
  end(ending: Ending): void {
    this.#finish(ending, { code: 1001, reason: '' })
  }

  #wireBrowser(): void {
    const { socket } = this.#browser
    socket.on('message', (data, isBinary) => {
      if (!isBinary) this.#metrics.relayOperations.inc({ operation: operationOf(data as Buffer) })
      this.#pass('to_upstream', data, isBinary)
    })
    socket.on('pong', () => (this.#browser.missed = 0))
    socket.on('ping', () => (this.#browser.missed = 0))
    // ws has answered a violation with the right close frame itself.
    socket.on('error', (error) => {
      this.#finish(isTooBig(error) ? ENDINGS.tooBig : { code: 1002, reason: '' }, { code: 1001, reason: '' })
    })
    socket.on('close', (code, reason) => {
      this.#finish({ code, reason: reason.toString() }, fromBrowser(code, reason))
    })
  }

  #wireUpstream(): void {
    const { socket } = this.#upstream
    socket.on('message', (data, isBinary) => this.#pass('to_browser', data, isBinary))
    socket.on('pong', () => (this.#upstream.missed = 0))
    socket.on('ping', () => (this.#upstream.missed = 0))
    socket.on('error', (error) => {
      this.#finish(isTooBig(error) ? ENDINGS.tooBig : ENDINGS.upstreamLost, undefined)
    })
    socket.on('close', (code, reason) => this.#finish(fromUpstream(code, reason), undefined))
  }

  #pass(direction: Direction, data: RawData, isBinary: boolean): void {
    const [from, to] =
      direction === 'to_browser' ? [this.#upstream, this.#browser] : [this.#browser, this.#upstream]
    from.missed = 0
    if (this.#ended) return
    this.#counts[direction]++
    const waiting = to.socket.bufferedAmount
    // Nearly always nothing waits, and no callback is needed to hear that it was sent.
    if (waiting === 0) return to.socket.send(data, { binary: isBinary })
    to.socket.send(data, { binary: isBinary }, () => this.#sent(from, to))
    if (waiting > this.#limits.maxBufferedBytes && !from.paused) this.#pause(from)
  }

  #pause(from: Side): void {
    from.paused = true
    from.socket.pause()
    if (from !== this.#upstream) return
    this.#slowTimer = setTimeout(() => this.end(ENDINGS.slowConsumer), this.#limits.slowConsumerMs)
  }

  #sent(from: Side, to: Side): void {
    if (!from.paused || to.socket.bufferedAmount > this.#limits.maxBufferedBytes / 2) return
    from.paused = false
    from.missed = 0
    if (from === this.#upstream) clearTimeout(this.#slowTimer)
    from.socket.resume()
  }

  #beat(): void {
    this.#flushCounts()
    if (isGone(this.#browser)) {
      this.#browser.socket.terminate()
    } else if (isGone(this.#upstream)) {
      this.end(ENDINGS.upstreamLost)
    }
  }

  /** The one way out. `toBrowser` and `toUpstream` are what each is told; undefined: a close frame without a code. */
  #finish(toBrowser: Ending | undefined, toUpstream: Ending | undefined): void {
    if (this.#ended) return
    this.#ended = true
    clearInterval(this.#heartbeat)
    clearTimeout(this.#slowTimer)
    this.#flushCounts()
    closeSocket(this.#browser.socket, toBrowser)
    closeSocket(this.#upstream.socket, toUpstream)
    this.#onEnd(toBrowser)
  }

  #flushCounts(): void {
    for (const direction of ['to_browser', 'to_upstream'] as const) {
      this.#metrics.relayMessages.inc({ direction }, this.#counts[direction])
      this.#counts[direction] = 0
    }
  }
}

function isTooBig(error: Error & { code?: string }): boolean {
  return error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'
}

/** Counts a heartbeat. The clock stands still for a side that we keep from talking. */
function isGone(side: Side): boolean {
  if (side.paused) return false
  if (side.missed >= MAX_MISSED) return true
  side.missed++
  side.socket.ping()
  return false
}

/** Closes a socket, by force when its peer does not answer in time. What was sent before still goes out first. */
export function closeSocket(socket: WebSocket, ending: Ending | undefined): void {
  if (socket.readyState === WebSocket.CLOSED) return
  // A paused socket would never read the peer's close frame.
  socket.resume()
  if (ending === undefined) socket.close()
  else socket.close(ending.code, ending.reason)
  setTimeout(() => socket.terminate(), CLOSE_MS).unref()
}
