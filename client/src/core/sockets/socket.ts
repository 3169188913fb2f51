import { notify, SocketError } from '../base/errors.ts'
import { GRACE_MS } from '../base/times.ts'
import type { Core } from '../core.ts'
import { Exchange, type RequestOptions } from './exchange.ts'
import { lazySeries } from './lazy-series.ts'
import { CLOSED, Link } from './link.ts'
import { OrderLog } from './order-log.ts'
import type { Series, SeriesOptions, SeriesPoints, SeriesSocket } from './series-shape.ts'
import type { Message, SocketStatus } from './socket-status.ts'
import { Streams } from './streams.ts'
import type { AnswerTo, Checked, StreamOperation, Undescribed } from './typed-messages.ts'

/** A socket for market data. All public sockets of a client share one connection, which closes after the last of them. */
export interface PublicSocket {
  /** The state of the connection. It is the same object until that changes. */
  status(): SocketStatus
  /**
   * Calls the listener after every change of the status.
   * @returns a function that stops the calls
   */
  onStatus(listener: () => void): () => void
  /** A request of an operation that the package does not know: give the type of the reply by hand. */
  request<T = never>(message: Undescribed<T>, options?: RequestOptions): Promise<NoInfer<T>>
  /**
   * Sends a message once, as soon as there is a connection, and resolves with its reply. Leave out `req_id`: the package
   * sets it. A message that may change something, or whose operation the package does not know, is sent as a `command`.
   * ```ts
   * const { active_symbols } = await socket.request({ active_symbols: 'brief' })
   * ```
   * @throws SocketError; the reason of `signal` when you abort
   */
  request<const M extends object>(message: Checked<M>, options?: RequestOptions): Promise<AnswerTo<M>>
  /** Follows a stream of an operation that the package does not know: give the type of its messages by hand. */
  subscribe<T = never>(
    message: Undescribed<T>,
    listener: (message: NoInfer<T>) => void,
    onError?: (error: SocketError) => void,
  ): () => void
  /**
   * Follows a stream. The package adds `subscribe: 1`, and subscribes again after every reconnect, so the listener gets
   * the first message of a stream, such as a history, again each time. Equal streams share one subscription.
   * ```ts
   * const stop = socket.subscribe({ ticks: 'R_100' }, ({ tick }) => draw(tick))
   * ```
   * @param onError called when the trading service refuses the stream and when the connection ends for good; without it,
   *   the page's error handlers get the error. After `RateLimit` and `AlreadySubscribed` the package subscribes
   *   again by itself
   * @returns a function that stops the stream
   * @throws TypeError if the message may change something; SocketError if the socket is closed
   */
  subscribe<const M extends object>(
    message: Checked<M, StreamOperation>,
    listener: (message: AnswerTo<M>) => void,
    onError?: (error: SocketError) => void,
  ): () => void
  /**
   * The newest prices or candles of a symbol, kept up to date: ordered, each once. After a reconnect it asks for what came after
   * its last point, not for everything again.
   * ```ts
   * const chart = socket.series({ symbol: 'R_100', style: 'ticks', count: 500 })
   * chart.subscribe(() => draw(chart.get().points))
   * ```
   */
  series<S extends keyof SeriesPoints>(options: SeriesOptions<S>): Series<SeriesPoints[S]>
  /**
   * Calls the listener for every message of the connection, including replies that arrive after their timeout.
   * @returns a function that stops the calls
   */
  listen(listener: (message: Message) => void): () => void
  /**
   * Stops the streams and listeners of this socket and rejects its open requests. Its status is `ended` from now on, which those of
   * `onStatus` are told last. Other sockets are not affected.
   */
  close(): void
}

/** A socket for trading on one account. */
export interface TradingSocket extends PublicSocket {
  /** A command that the package does not know: give the type of its reply by hand. */
  command<T = never>(message: Undescribed<T>, options?: RequestOptions): Promise<NoInfer<T>>
  /**
   * Sends a message that may change something, such as `buy`, `sell` or `cancel`. It is sent now and once, or never: it
   * does not wait for a connection and is not repeated. If the connection has been silent for 3 s, it must reply to a ping
   * within 1 s first.
   * ```ts
   * const { buy } = await socket.command({ buy: proposal.id, price: proposal.ask_price })
   * ```
   * @throws SocketError with the code `not_sent` if the command was not sent and never will be; with
   *   `outcome: 'unknown'` if it was sent but may or may not have been executed; with the code of the trading service if
   *   that refused it
   */
  command<const M extends object>(message: Checked<M>, options?: RequestOptions): Promise<AnswerTo<M>>
}

/** What a page sends and receives on one path, and the sockets that share it. */
class Connection {
  userCount = 0
  declare readonly exchange: Exchange
  declare readonly streams: Streams
  readonly statusListeners = new Set<() => void>()
  readonly listeners = new Set<(message: Message) => void>()

  /**
   * @param waiting the status of every link that waits, by its number, also while it is closed
   * @param more how many links there may be besides the first
   */
  constructor(core: Core, path: string, waiting: Map<number, SocketStatus>, orders: OrderLog, more: number) {
    const nextId = (): number => orders.nextId()
    const open = (number: number): Link => {
      const owner = {
        nextId,
        up: () => {
          this.streams.up(link)
          if (number === 0) this.exchange.up()
        },
        message: (message: Message) => {
          orders.take(message)
          if (!this.exchange.take(message)) this.streams.take(link, message)
          notify(this.listeners, (listener) => listener(message))
        },
        down: (status: SocketStatus) => {
          if (number === 0) this.exchange.down(status)
          this.streams.down(link, status)
        },
        status: () => {
          const { status } = link
          if (status.retryAt !== undefined) waiting.set(number, status)
          else if (status.state !== 'ended') waiting.delete(number)
          // Requests wait while the connection is stale.
          if (number === 0 && status.state === 'open') this.exchange.up()
          notify(this.statusListeners, (listener) => listener())
        },
      }
      const link = new Link(core, path, owner, waiting.get(number))
      return link
    }
    this.streams = new Streams(open, nextId, more)
    this.exchange = new Exchange(this.streams.link, orders, core.clock)
  }

  get link(): Link {
    return this.streams.link
  }
}

/** What is kept of a path: the status of the links that wait or were closed while they waited, and the orders, in any session. */
type Kept = readonly [waiting: Map<number, SocketStatus>, orders: OrderLog]

/** The sockets of a client. */
export class Sockets {
  readonly #core: Core
  /** By path and session: the latest, also one that has ended. */
  readonly #connections = new Map<string, Connection>()
  #isClosed = false
  readonly #paths = new Map<string, Kept>()

  constructor(core: Core) {
    this.#core = core
  }

  /**
   * Opens a socket on the connection to a path, and the connection if there is none.
   * @param more how many links the connection may open besides the first
   * @param session returns the key of the session, if the connection belongs to one: no other session shares it
   */
  open(path: string, more = 0, session?: () => string | undefined): TradingSocket {
    const kept: Kept = this.#paths.get(path) ?? [new Map(), new OrderLog(() => this.open(path, more, session))]
    this.#paths.set(path, kept)
    const id = path + session?.()
    const existing = this.#connections.get(id)
    const connection =
      existing && existing.link.status.state !== 'ended' ? existing : new Connection(this.#core, path, ...kept, more)
    this.#connections.set(id, connection)
    if (this.#isClosed) connection.link.close()
    connection.userCount++
    return socketOn(connection, this.#core.clock.get, () => {
      if (--connection.userCount > 0) return
      setTimeout(() => {
        if (connection.userCount === 0) connection.link.close()
      }, GRACE_MS)
    })
  }

  /** Closes every connection at once, and those that are asked for later. */
  close(): void {
    this.#isClosed = true
    for (const { link } of this.#connections.values()) link.close()
  }
}

/** A socket on a shared connection. Closing it ends only what it has started itself. */
function socketOn(
  { exchange, streams, listeners, statusListeners }: Connection,
  serverNow: Core['clock']['get'],
  release: () => void,
): TradingSocket {
  const own = new AbortController()
  const { signal } = own
  const stops = new Set<() => void>()
  /** Set by close(), unless the connection has ended before. */
  let last: SocketStatus | undefined
  /** Makes close() stop what has been started, unless that has been stopped before. */
  const untilClosed = (stop: () => void): (() => void) => {
    const once = (): void => void (stops.delete(once) && stop())
    stops.add(once)
    return once
  }
  const until = <T>(set: Set<T>, value: T, stopped?: () => unknown): (() => void) => {
    if (signal.aborted) return () => undefined
    set.add(value)
    return untilClosed(() => {
      set.delete(value)
      stopped?.()
    })
  }
  const bound = (options: RequestOptions = {}): RequestOptions => ({
    ...options,
    signal: options.signal ? AbortSignal.any([options.signal, signal]) : signal,
  })
  const socket: TradingSocket & SeriesSocket = {
    serverNow,
    status: () => last ?? streams.status,
    onStatus: (listener) =>
      until(
        statusListeners,
        () => listener(),
        () => last && listener(),
      ),
    request: (message: object, options?: RequestOptions) =>
      exchange.request(message as Message, bound(options)) as Promise<never>,
    command: (message: object, options?: RequestOptions) =>
      exchange.command(message as Message, bound(options)) as Promise<never>,
    subscribe(message: object, listener: (message: never) => void, onError?: (error: SocketError) => void) {
      signal.throwIfAborted()
      return untilClosed(streams.subscribe(message as Message, listener as (message: Message) => void, onError))
    },
    series(options) {
      signal.throwIfAborted()
      const series = lazySeries(socket, options)
      return { ...series, stop: untilClosed(() => series.stop()) }
    },
    listen: (listener) => until(listeners, (message: Message) => listener(message)),
    close() {
      if (signal.aborted) return
      if (streams.status.state !== 'ended') last = CLOSED
      own.abort(new SocketError('closed', 'the socket was closed'))
      notify(stops, (stop) => stop())
      release()
    },
  }
  return socket
}
