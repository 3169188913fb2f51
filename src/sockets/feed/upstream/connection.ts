import type { FastifyBaseLogger } from 'fastify'
import { logFailure } from '../../../telemetry/failure-log.ts'
import type { FeedMetrics } from '../../../telemetry/feed-metrics.ts'
import { UPSTREAM } from '../../close-codes.ts'
import { isLastOfRead, SocketEnd, type OpenSocket } from '../../socket-end.ts'
import { openUpstreamSocket } from '../../upstream-socket.ts'
import { type UpstreamMessage, type WriteBatch, dissect } from '../wire/index.ts'
import type { ConnectionOwner, Listener, WriteRequest } from './connection-users.ts'
import { Pings } from './pings.ts'
import { Backoff, RECONNECT } from './recovery.ts'

/** What all connections of a feed work with. */
export interface ConnectionDependencies {
  readonly url: string
  readonly maxMessageBytes: number
  readonly batch: WriteBatch
  readonly log: FastifyBaseLogger
  readonly metrics: Pick<FeedMetrics, 'reconnects' | 'unattributed'>
  /** Time between two WebSocket pings. */
  readonly heartbeatMs?: number | undefined
}

/**
 * A message that exceeds MAX_UPSTREAM_MESSAGE_BYTES by no more than this is still received, and only the browsers that asked for
 * it are closed. A longer one costs the connection.
 */
const EXCESS_BYTES = 4 * 1_048_576
/** Upstream ends a connection that has asked nothing for about two minutes (docs/upstream.md). A WebSocket ping is no request. */
const BEATS_PER_PING = 3
/** How often a connection looks after what waits on it. */
const BEAT_MS = 10_000

/**
 * One upstream socket of the feed, which comes back by itself. It gives every request a `req_id` and takes each message to
 * the listener of that request.
 */
export class Connection {
  readonly #deps: ConnectionDependencies
  readonly #owner: ConnectionOwner
  readonly #listeners = new Map<number, Listener>()
  #nextReqId = 1
  #end: SocketEnd | undefined
  #pings: Pings | undefined
  #beat: NodeJS.Timeout | undefined
  #beats = 0
  #opening: AbortController | undefined
  readonly #backoff = new Backoff(RECONNECT)
  /** When it was lost, in ms of the monotonic clock. Undefined while it is open or was never lost. */
  #lostAt: number | undefined
  #isEnded = false

  constructor(deps: ConnectionDependencies, owner: ConnectionOwner) {
    this.#deps = deps
    this.#owner = owner
  }

  get isOpen(): boolean {
    return this.#end !== undefined
  }

  /** Whether something is expected on it. A ping counts, as long as it is not answered. */
  get isAwaited(): boolean {
    return this.#listeners.size > 0
  }

  /** Whether it is open, something is expected on it, and upstream has been silent for more than five seconds. */
  get isSilent(): boolean {
    return this.#pings?.isSilent === true
  }

  /** Whether it was lost or refused, and is being opened again. */
  get isRetrying(): boolean {
    return this.#backoff.isWaiting || (this.#opening !== undefined && this.#backoff.hasFailed)
  }

  /** Opens the connection, unless it is open or about to be. */
  open(): void {
    if (this.isOpen || this.#isEnded || this.#opening !== undefined || this.#backoff.isWaiting) return
    void this.#attempt()
  }

  /**
   * Sends a request. The connection must be open.
   * @returns its `req_id`, which belongs to the listener until it is released
   */
  send(write: WriteRequest, listener: Listener): number {
    const reqId = this.#nextReqId++
    this.#listeners.set(reqId, listener)
    this.#end?.socket.send(write(reqId), { binary: false })
    return reqId
  }

  /** From now on messages with this `req_id` are dropped. */
  release(reqId: number): void {
    this.#listeners.delete(reqId)
  }

  assign(reqId: number, listener: Listener): void {
    this.#listeners.set(reqId, listener)
  }

  /** Calls back once it is no longer silent: upstream has said something, or it is lost and its listeners have been told. */
  afterSilence(callback: () => void): void {
    if (this.#pings === undefined) callback()
    else this.#pings.afterSilence(callback)
  }

  /** Lets go of the connection, which is open, and opens it again if it is needed. */
  lose(why: string): void {
    if (this.#end === undefined) return
    logFailure(this.#deps.log, 'the feed lost its upstream socket', { why, kind: this.#owner.kind })
    this.#lostAt = performance.now()
    this.#drop()
    this.#owner.lost?.()
    this.#tryAgain()
  }

  /** Ends the connection for good, without telling its owner. */
  end(): void {
    this.#isEnded = true
    this.#opening?.abort()
    this.#backoff.end()
    this.#listeners.clear()
    this.#drop()
  }

  async #attempt(): Promise<void> {
    const { url, maxMessageBytes, log } = this.#deps
    this.#opening = new AbortController()
    const outcome = await openUpstreamSocket(url, maxMessageBytes + EXCESS_BYTES, this.#opening.signal)
    this.#opening = undefined
    if (outcome.is === 'open') {
      if (this.#isEnded) outcome.connection.socket.terminate()
      else this.#opened(outcome.connection)
      return
    }
    if (this.#isEnded) return
    logFailure(
      log,
      'upstream refused a socket of the feed',
      { why: outcome.why, kind: this.#owner.kind },
      outcome.cause,
    )
    this.#tryAgain()
  }

  #opened(connection: OpenSocket): void {
    const { metrics, log, heartbeatMs } = this.#deps
    const end = new SocketEnd(
      connection,
      UPSTREAM,
      { message: (message, isBinary) => isBinary || this.#receive(message), ended: ({ why }) => this.lose(why) },
      heartbeatMs,
    )
    this.#end = end
    this.#beats = 0
    this.#pings = new Pings(this)
    this.#beat = setInterval(() => this.#lookAfter(), BEAT_MS)
    if (this.#lostAt !== undefined) {
      metrics.reconnects.inc()
      const ms = Math.round(performance.now() - this.#lostAt)
      log.info({ kind: this.#owner.kind, ms }, 'the feed has its upstream socket again')
      this.#lostAt = undefined
    }
    this.#owner.opened()
    end.begin()
  }

  #receive(data: Buffer): void {
    const { batch, metrics, log, maxMessageBytes } = this.#deps
    const isLast = isLastOfRead(data)
    if (!isLast) batch.open()
    this.#pings?.heard()
    const message = dissect(data)
    const listener = message?.reqId === undefined ? undefined : this.#listeners.get(message.reqId)
    if (message !== undefined && listener !== undefined) this.#hand(message, listener, data.length > maxMessageBytes)
    else {
      metrics.unattributed.inc()
      const { reqId, subscriptionId } = message ?? {}
      if (reqId !== undefined && subscriptionId !== undefined) this.#owner.unclaimed?.(reqId, subscriptionId)
      logFailure(log, 'upstream sent the feed a message that answers no request', { kind: this.#owner.kind })
    }
    if (isLast) batch.flush()
  }

  #hand(message: UpstreamMessage, listener: Listener, isTooBig: boolean): void {
    const { reqId } = message
    if (reqId !== undefined && listener.isAnsweredOnce === true) this.release(reqId)
    try {
      if (isTooBig && listener.tooBig !== undefined) {
        this.#noteTooBig()
        listener.tooBig(message)
      } else listener.received(message)
      // Not as soon as it is open: whatever accepts a connection only to close it must not be asked at once again.
      this.#backoff.reset()
    } catch (error) {
      const { log } = this.#deps
      log.error({ err: error, kind: this.#owner.kind }, 'a message of upstream could not be handled')
      // Its work may be half done: browsers that wait for the rest must hear that there is no more to come.
      if (reqId !== undefined) this.#listeners.set(reqId, listener)
      this.lose('internal error')
    }
  }

  #noteTooBig(): void {
    const { batch, log } = this.#deps
    // As for a socket of the browser's own, which could not receive it.
    logFailure(log, 'upstream broke the WebSocket protocol', {
      kind: 'public',
      why: 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH',
    })
    // Browsers still get what was read before it.
    batch.settle()
  }

  #lookAfter(): void {
    for (const [reqId, listener] of this.#listeners) listener.beat?.(reqId)
    this.#owner.beat?.()
    if (++this.#beats % BEATS_PER_PING > 0) return
    if (this.#owner.isNeeded()) this.#pings?.keepAlive()
    else this.#drop()
  }

  #tryAgain(): void {
    if (this.#owner.isNeeded()) this.#backoff.wait(() => this.open())
  }

  /** Lets go of the socket, and tells the listeners. */
  #drop(): void {
    clearInterval(this.#beat)
    this.#end?.close()
    this.#end = undefined
    const pings = this.#pings
    this.#pings = undefined
    const listeners = [...this.#listeners.values()]
    this.#listeners.clear()
    for (const listener of listeners) listener.lost?.()
    pings?.end()
  }
}
