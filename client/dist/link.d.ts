import type { Message, SocketStatus } from './socket-status.ts';
/** Whom a link calls. */
export interface LinkOwner {
    /** Opens a WebSocket. */
    readonly connect: () => WebSocket;
    /** After a 4401: whether the user is logged in all the same. */
    readonly confirm: () => Promise<boolean>;
    /** A new connection may be used. */
    readonly up: () => void;
    readonly message: (message: Message) => void;
    /** The connection has gone, or there will be none any more: what was sent on it gets no response. */
    readonly down: (status: SocketStatus) => void;
    readonly status: () => void;
}
/** A connection that comes back by itself, until it is closed or the server says that it must not. */
export declare class Link {
    #private;
    status: SocketStatus;
    constructor(owner: LinkOwner);
    /** True once a message may be sent; whether anybody listens is another matter: see {@link isFresh}. */
    get isUp(): boolean;
    /** The connection has just shown that it works. */
    get isFresh(): boolean;
    /** Sends a message now. Only when {@link isUp}. */
    send(message: Message): void;
    close(): void;
}
