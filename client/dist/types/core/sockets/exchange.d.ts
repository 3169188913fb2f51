import { SocketError } from '../base/errors.ts';
import type { ServerClock } from '../base/server-clock.ts';
import type { Link } from './link.ts';
import type { OrderLog } from './order-log.ts';
import type { Message, SocketStatus } from './socket-status.ts';
/** Options of `request` and `command`. */
export interface RequestOptions {
    /** Stops waiting for the reply. It cannot take back a message that has been sent. */
    readonly signal?: AbortSignal | undefined;
    /** Timeout until the reply arrives, in milliseconds; by default 15,000 for a request and 30,000 for a command. */
    readonly timeoutMs?: number | undefined;
}
/** Sends messages and matches replies to them by `req_id`. */
export declare class Exchange {
    #private;
    constructor(link: Link, orders: OrderLog, clock: ServerClock);
    /** Waits for a connection, then sends the message once. A message that may change something becomes a {@link command}. */
    request(message: Message, options?: RequestOptions): Promise<Message>;
    /** Sends the message now and once, or rejects with `not_sent`. */
    command(message: Message, options?: RequestOptions): Promise<Message>;
    /** Sends the requests that have waited for a working connection. */
    up(): void;
    /** Rejects what was sent on a lost connection, unless that was refused; after the last connection, rejects everything. */
    down({ state, code, reason }: SocketStatus): void;
    /** Settles the message that this one replies to. @returns false if it replies to none */
    take(message: Message): boolean;
}
/** False if the message certainly changes nothing. */
export declare function isCommand(message: Message): boolean;
/** The error of the trading service that a message carries, if any. */
export declare function errorOf(message: Message): SocketError | undefined;
