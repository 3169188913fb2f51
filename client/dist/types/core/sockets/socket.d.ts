import { SocketError } from '../base/errors.ts';
import type { Core } from '../core.ts';
import { type RequestOptions } from './exchange.ts';
import type { Series, SeriesOptions, SeriesPoints } from './series-shape.ts';
import type { Message, SocketStatus } from './socket-status.ts';
import type { AnswerTo, Checked, StreamOperation, Undescribed } from './typed-messages.ts';
/** A socket for market data. All public sockets of a client share one connection, which closes after the last of them. */
export interface PublicSocket {
    /** The state of the connection. It is the same object until that changes. */
    status(): SocketStatus;
    /**
     * Calls the listener after every change of the status.
     * @returns a function that stops the calls
     */
    onStatus(listener: () => void): () => void;
    /** A request of an operation that the package does not know: give the type of the reply by hand. */
    request<T = never>(message: Undescribed<T>, options?: RequestOptions): Promise<NoInfer<T>>;
    /**
     * Sends a message once, as soon as there is a connection, and resolves with its reply. Leave out `req_id`: the package
     * sets it. A message that may change something, or whose operation the package does not know, is sent as a `command`.
     * ```ts
     * const { active_symbols } = await socket.request({ active_symbols: 'brief' })
     * ```
     * @throws SocketError; the reason of `signal` when you abort
     */
    request<const M extends object>(message: Checked<M>, options?: RequestOptions): Promise<AnswerTo<M>>;
    /** Follows a stream of an operation that the package does not know: give the type of its messages by hand. */
    subscribe<T = never>(message: Undescribed<T>, listener: (message: NoInfer<T>) => void, onError?: (error: SocketError) => void): () => void;
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
    subscribe<const M extends object>(message: Checked<M, StreamOperation>, listener: (message: AnswerTo<M>) => void, onError?: (error: SocketError) => void): () => void;
    /**
     * The newest prices or candles of a symbol, kept up to date: ordered, each once. After a reconnect it asks for what came after
     * its last point, not for everything again.
     * ```ts
     * const chart = socket.series({ symbol: 'R_100', style: 'ticks', count: 500 })
     * chart.subscribe(() => draw(chart.get().points))
     * ```
     */
    series<S extends keyof SeriesPoints>(options: SeriesOptions<S>): Series<SeriesPoints[S]>;
    /**
     * Calls the listener for every message of the connection, including replies that arrive after their timeout.
     * @returns a function that stops the calls
     */
    listen(listener: (message: Message) => void): () => void;
    /**
     * Stops the streams and listeners of this socket and rejects its open requests. Its status is `ended` from now on, which those of
     * `onStatus` are told last. Other sockets are not affected.
     */
    close(): void;
}
/** A socket for trading on one account. */
export interface TradingSocket extends PublicSocket {
    /** A command that the package does not know: give the type of its reply by hand. */
    command<T = never>(message: Undescribed<T>, options?: RequestOptions): Promise<NoInfer<T>>;
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
    command<const M extends object>(message: Checked<M>, options?: RequestOptions): Promise<AnswerTo<M>>;
}
/** The sockets of a client. */
export declare class Sockets {
    #private;
    constructor(core: Core);
    /**
     * Opens a socket on the connection to a path, and the connection if there is none.
     * @param more how many links the connection may open besides the first
     * @param session returns the key of the session, if the connection belongs to one: no other session shares it
     */
    open(path: string, more?: number, session?: () => string | undefined): TradingSocket;
    /** Closes every connection at once, and those that are asked for later. */
    close(): void;
}
