import { type Message, type SocketStatus } from './socket-status.ts';
/** What a link needs, and whom it notifies. */
export interface LinkOwner {
    /** Opens a WebSocket. */
    readonly connect: () => WebSocket;
    /** Returns a new `req_id`, for a ping. */
    readonly nextId: () => number;
    /** Called after the close code 4401. Resolves with true if the user is logged in nevertheless. */
    readonly confirm: () => Promise<boolean>;
    /** Called when a new connection has opened. */
    readonly up: () => void;
    readonly message: (message: Message) => void;
    /** Called when the connection is lost. What was sent on it gets no reply. With the state `ended`, no other will follow. */
    readonly down: (status: SocketStatus) => void;
    /** Called after every change of {@link Link.status}. */
    readonly status: () => void;
}
/** A connection that reconnects by itself until it is closed or the server forbids it. */
export declare class Link {
    #private;
    status: SocketStatus;
    /** @param before the status of a closed link to the same path, whose delay this one keeps */
    constructor(owner: LinkOwner, before?: SocketStatus);
    /** True while a message can be sent. It may still get lost on a dead connection: see {@link isFresh}. */
    get isUp(): boolean;
    /** True if a message has arrived on the connection, or on the one before if there is none. */
    get isProven(): boolean;
    /** True if the connection has just shown that it works. */
    get isFresh(): boolean;
    /** Sends the text of a message now. Call it only while {@link isUp}. */
    send(text: string): void;
    close(): void;
}
