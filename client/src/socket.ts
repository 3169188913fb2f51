import { notify, SocketError } from './errors.ts'
import { Exchange, type RequestOptions } from './exchange.ts'
import { Link, type LinkOwner } from './link.ts'
import type { Message, SocketStatus } from './socket-status.ts'
import { Streams } from './streams.ts'

/** A socket for market data. Equal ones of a page share a connection, which closes after the last of them. */
export interface PublicSocket {
  /** How it is doing: the same object until that changes. */
  status(): SocketStatus
  /** Calls the listener after every change of the status. @returns what ends that */
  onStatus(listener: () => void): () => void
  /**
   * Asks once, as soon as there is a connection, and resolves with the response. A message that may change something
   * is sent as a `command`.
   * @throws SocketError; the signal's reason when the caller aborted
   */
  request<T = Message>(message: Message, options?: RequestOptions): Promise<T>
  /**
   * Follows a stream: `subscribe: 1` is added, and every new connection asks for it again, once. The listener therefore
   * gets what comes first, such as a history, more than once.
   * @param onError told of a refusal, and of the end of the connection; reported as an uncaught error unless given
   * @returns what ends it
   */
  subscribe<T = Message>(
    message: Message,
    listener: (message: T) => void,
    onError?: (error: SocketError) => void,
  ): () => void
  /** Every message that comes, also one that nobody waits for any more. @returns what ends that */
  listen(listener: (message: Message) => void): () => void
  /** Ends what was begun on this socket. */
  close(): void
}

/** A socket for trading on one account. */
export interface TradingSocket extends PublicSocket {
  /**
   * Sends what may change something (buy, sell, cancel, …): once, now or never. After 3 s of silence the connection has
   * a second to show that it works.
   * @throws SocketError with the code `not_sent`, when it was not and will not be; with `outcome: 'unknown'`, when it
   *   was, and nobody knows what became of it; with the trading service's own code when it refused
   */
  command<T = Message>(message: Message, options?: RequestOptions): Promise<T>
}

/** A connection and all that is done on it. */
class Line {
  users = 0
  readonly exchange: Exchange
  readonly streams: Streams
  readonly statusListeners = new Set<() => void>()
  readonly listeners = new Set<(message: Message) => void>()
  readonly link: Link

  constructor(owner: Pick<LinkOwner, 'connect' | 'confirm'>) {
    let id = 0
    const nextId = (): number => ++id
    this.link = new Link({
      ...owner,
      up: () => {
        this.streams.up()
        this.exchange.up()
      },
      message: (message) => {
        if (!this.exchange.take(message)) this.streams.take(message)
        notify(this.listeners, message)
      },
      down: (status) => {
        this.exchange.down(status)
        this.streams.down(status)
      },
      status: () => {
        // What waited while it was stale.
        if (this.link.status.state === 'open') this.exchange.up()
        notify(this.statusListeners)
      },
    })
    this.exchange = new Exchange(this.link, nextId)
    this.streams = new Streams(this.link, nextId)
  }
}

/** A connection that nobody uses is kept for a moment, since a component may be mounted again at once. */
const GRACE_MS = 200

/** The sockets of a page, by address. */
export class Sockets {
  readonly #lines = new Map<string, Line>()

  /** Joins the connection to an address, or opens one. */
  open(path: string, owner: Pick<LinkOwner, 'connect' | 'confirm'>): TradingSocket {
    const known = this.#lines.get(path)
    const line = known && known.link.status.state !== 'ended' ? known : new Line(owner)
    this.#lines.set(path, line)
    line.users++
    return handleOf(line, () => {
      if (--line.users > 0) return
      setTimeout(() => {
        if (line.users > 0) return
        line.link.close()
        if (this.#lines.get(path) === line) this.#lines.delete(path)
      }, GRACE_MS)
    })
  }

  /** Closes every connection at once. */
  close(): void {
    for (const { link } of this.#lines.values()) link.close()
  }
}

/** One user's view of a connection: what it began ends with it. */
function handleOf(
  { link, exchange, streams, listeners, statusListeners }: Line,
  release: () => void,
): TradingSocket {
  const own = new AbortController()
  const { signal } = own
  const until = <T>(set: Set<T>, value: T): (() => void) => {
    set.add(value)
    const stop = (): void => void set.delete(value)
    signal.addEventListener('abort', stop)
    return stop
  }
  const bound = (options: RequestOptions = {}): RequestOptions => ({
    ...options,
    signal: options.signal ? AbortSignal.any([options.signal, signal]) : signal,
  })
  return {
    status: () => link.status,
    onStatus: (listener) => until(statusListeners, () => listener()),
    request: (message, options) => exchange.request(message, bound(options)) as Promise<never>,
    command: (message, options) => exchange.command(message, bound(options)) as Promise<never>,
    subscribe(message, listener, onError) {
      signal.throwIfAborted()
      const stop = streams.subscribe(message, listener as (message: Message) => void, onError)
      signal.addEventListener('abort', stop)
      return stop
    },
    listen: (listener) => until(listeners, (message: Message) => listener(message)),
    close() {
      if (signal.aborted) return
      own.abort(new SocketError('closed', 'the socket was closed'))
      release()
    },
  }
}
