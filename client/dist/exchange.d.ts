import { SocketError } from './errors.ts';
import type { Link } from './link.ts';
import type { Message, SocketStatus } from './socket-status.ts';
/** How long a caller waits. */
export interface RequestOptions {
    readonly signal?: AbortSignal;
    /** Longest wait for the response; 15,000 unless given, for a command 30,000. */
    readonly timeoutMs?: number;
}
/** Messages and their responses, matched by `req_id`. */
export declare class Exchange {
    #private;
    constructor(link: Link, nextId: () => number);
    /** Waits for a connection, then sends once. A message that may change something is a {@link command} instead. */
    request(message: Message, options?: RequestOptions): Promise<Message>;
    /** Sends once and now, or rejects with `not_sent`. */
    command(message: Message, options?: RequestOptions): Promise<Message>;
    /** A connection may be used: sends what waited for it. */
    up(): void;
    /** The connection has gone, or there will be none any more. */
    down({ state, code, reason }: SocketStatus): void;
    /** @returns false when nobody waits for this message */
    take(message: Message): boolean;
}
/** The error that a message of the trading service carries, if it does. */
export declare function errorOf(message: Message): SocketError | undefined;
