import type { Client } from './create-client.ts';
import type { SocketError } from './errors.ts';
import type { Message, SocketStatus } from './socket-status.ts';
import type { SessionState } from './session-state.ts';
/** What a stream has brought so far. */
export interface Subscription<T> {
    /** The newest message; undefined before the first. */
    readonly data?: T;
    /** Why there will be no more. */
    readonly error?: SocketError;
    readonly status: SocketStatus;
}
/** The user's session. */
export declare function useSession({ session }: Pick<Client, 'session'>): SessionState;
/**
 * Follows a stream as long as the component is mounted. Equal streams of a page share one.
 * @param message what to subscribe to; undefined for nothing
 * @param account for a stream of the trading socket; without it, of the public one
 */
export declare function useSubscription<T = Message>(client: Client, message: Message | undefined, account?: string): Subscription<T>;
