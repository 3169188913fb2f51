import type { CloseCode, CloseReason } from './catalog.ts';
/** A message of the trading service, either way. */
export type Message = Readonly<Record<string, unknown>>;
/** How a socket is doing. */
export interface SocketStatus {
    /**
     * `open`: messages come. `stale`: they should, and do not. `waiting`: it will connect again, at `retryAt` where that is
     * known. `ended`: it will not.
     */
    readonly state: 'connecting' | 'open' | 'stale' | 'waiting' | 'ended';
    /** Milliseconds, as `Date.now()`. */
    readonly retryAt?: number;
    /** How the last connection closed. */
    readonly code?: CloseCode | (number & {});
    readonly reason?: CloseReason | (string & {});
}
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
