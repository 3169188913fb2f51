import type { Client } from '../core/create-client.ts';
import type { SocketError } from '../core/base/errors.ts';
import type { SocketStatus } from '../core/sockets/socket-status.ts';
import type { SeriesOptions, SeriesPoints, SeriesState } from '../core/sockets/series-shape.ts';
import type { PublicSocket, TradingSocket } from '../core/sockets/socket.ts';
import type { AnswerTo, Checked, StreamOperation, Undescribed } from '../core/sockets/typed-messages.ts';
/** A socket that is open as long as its component. */
export interface OpenSocket<S> {
    /** Undefined until the component has been mounted, and for a trading socket until a user is logged in. */
    readonly socket?: S;
    /** The state of the connection; `waiting` while there is no socket. */
    readonly status: SocketStatus;
}
/** The state of a stream. */
export interface Subscription<T> {
    /** The latest message; undefined before the first one. */
    readonly data?: T;
    /** The refusal of the trading service, until a message arrives after it, or why the connection ended. */
    readonly error?: SocketError | undefined;
    /** The state of the connection; `waiting` while there is none. */
    readonly status: SocketStatus;
}
/**
 * Opens a socket with the component, and closes it with the component.
 * ```tsx
 * const { socket, status } = useSocket(client, accountId)
 * return <button disabled={status.state !== 'open'} onClick={() => socket?.command(order)}>Buy</button>
 * ```
 * A trading socket is opened once a user is logged in. In another session it is another socket.
 * @param account the account to trade on; null for none yet, so that no socket is opened; undefined for the public socket
 */
export declare function useSocket(client: Client): OpenSocket<PublicSocket>;
export declare function useSocket(client: Client, account: string | null): OpenSocket<TradingSocket>;
export declare function useSocket(client: Client, account: string | null | undefined): OpenSocket<PublicSocket>;
/** Follows a stream of an operation that the package does not know: give the type of the messages by hand. */
export declare function useSubscription<T = never>(client: Client, message: Undescribed<T> | undefined, account?: string | null): Subscription<NoInfer<T>>;
/**
 * Follows a stream while the component is mounted. Equal streams of a client share one subscription.
 * ```tsx
 * const { data, error, status } = useSubscription(client, { ticks: 'R_100' })
 * ```
 * @param message the subscription; undefined to subscribe to nothing
 * @param account the account whose trading socket carries the stream, once a user is logged in; null for none yet; undefined for the
 * public socket
 */
export declare function useSubscription<const M extends object>(client: Client, message: Checked<M, StreamOperation> | undefined, account?: string | null): Subscription<AnswerTo<M>>;
/**
 * The newest prices or candles of a symbol, while the component is mounted.
 * ```tsx
 * const { points } = useSeries(client, { symbol: 'R_100', style: 'candles', granularity: 60 })
 * ```
 * @param options what to show; undefined for nothing
 * @param account the account whose trading socket carries the stream, once a user is logged in; null for none yet; undefined for the
 * public socket
 */
export declare function useSeries<S extends keyof SeriesPoints>(client: Client, options: SeriesOptions<S> | undefined, account?: string | null): SeriesState<SeriesPoints[S]>;
