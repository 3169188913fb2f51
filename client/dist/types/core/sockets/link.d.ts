import type { Core } from '../core.ts';
import type { Message, SocketStatus } from './socket-status.ts';
/** Whom a link notifies. */
interface LinkOwner {
    /** Returns a new `req_id`, for a ping. */
    readonly nextId: () => number;
    /** Called when a new connection has opened. */
    readonly up: () => void;
    readonly message: (message: Message) => void;
    /** Called when the connection is lost. What was sent on it gets no reply. With the state `ended`, no other will follow. */
    readonly down: (status: SocketStatus) => void;
    /** Called after every change of {@link Link.status}. */
    readonly status: () => void;
}
/** The status of what the page has closed. */
export declare const CLOSED: SocketStatus;
/**
 * A connection that reconnects by itself until it is closed or the server forbids it. Its phases are the states of its status, and
 * in each of them something owns the next step:
 * - `waiting`: the timer until `retryAt`, and the clock where that is late; without a `retryAt` the question whether the session
 *   has ended or why no connection opens, or the return of a page that was left.
 * - `connecting`: the events of the connection, and the clock, which gives up.
 * - `open`: the clock, which pings a silent connection.
 * - `stale`: a message, which shows that it works, and the clock, which drops it.
 * - `ended`: nothing.
 */
export declare class Link {
    #private;
    status: SocketStatus;
    /** @param before the status of a closed link to the same path, whose delay this one keeps */
    constructor(core: Core, path: string, owner: LinkOwner, before?: SocketStatus);
    /** True while a message can be sent. It may still get lost on a dead connection: see {@link isFresh}. */
    get isUp(): boolean;
    /** True if a message has arrived on the connection, or on the one before if there is none. */
    get isProven(): boolean;
    /** True if the connection has just shown that it works: any other is sent a ping before a command. */
    get isFresh(): boolean;
    /** Sends the text of a message now. Call it only while {@link isUp}. */
    send(text: string): void;
    close(): void;
}
export {};
