import type { Client } from '../core/create-client.ts';
import type { SocketError } from '../core/base/errors.ts';
import type { SocketStatus } from '../core/sockets/socket-status.ts';
import type { SeriesOptions, SeriesPoints, SeriesState } from '../core/sockets/series-shape.ts';
import type { SessionState } from '../core/session/session-state.ts';
import type { AnswerTo, Described, StreamOperation, Undescribed } from '../core/sockets/typed-messages.ts';
/** The state of a stream. */
export interface Subscription<T> {
    /** The latest message; undefined before the first one. */
    readonly data?: T;
    /** The refusal of the trading service, until a message arrives after it, or why the connection ended. */
    readonly error?: SocketError | undefined;
    /** The state of the connection. */
    readonly status: SocketStatus;
}
/**
 * The session of the user. The component renders again after every change.
 * ```tsx
 * const session = useSession(client)
 * return session.status === 'active' ? <Account /> : <a href={client.session.loginUrl()}>Log in</a>
 * ```
 */
export declare function useSession({ session }: Pick<Client, 'session'>): SessionState;
/**
 * Follows a stream while the component is mounted. Equal streams of a client share one subscription.
 * ```tsx
 * const { data, error, status } = useSubscription(client, { ticks: 'R_100' })
 * ```
 * @param message the subscription; undefined to subscribe to nothing
 * @param account the account whose trading socket carries the stream; undefined for the public socket
 */
export declare function useSubscription<const M extends object>(client: Client, message: (M & Described<M, StreamOperation>) | undefined, account?: string): Subscription<AnswerTo<M>>;
/** The same for an operation that the package does not know: give the type of the messages by hand. */
export declare function useSubscription<T = never>(client: Client, message: Undescribed<T> | undefined, account?: string): Subscription<NoInfer<T>>;
/**
 * The newest prices or candles of a symbol, while the component is mounted.
 * ```tsx
 * const { points } = useSeries(client, { symbol: 'R_100', style: 'candles', granularity: 60 })
 * ```
 * @param options what to show; undefined for nothing
 * @param account the account whose trading socket carries the stream; undefined for the public socket
 */
export declare function useSeries<S extends keyof SeriesPoints>(client: Client, options: SeriesOptions<S> | undefined, account?: string): SeriesState<SeriesPoints[S]>;
