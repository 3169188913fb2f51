/** What {@link SentOrder.account} returns: a socket on the account of an order. */
export interface OrderSocket {
    status(): {
        readonly state: string;
    };
    onStatus(listener: () => void): () => void;
    request(message: never, options: {
        readonly signal: AbortSignal | undefined;
        readonly timeoutMs: number;
    }): Promise<object>;
    subscribe(message: never, listener: (message: never) => void, onError: (error: Error) => void): () => void;
    listen(listener: (message: Readonly<Record<string, unknown>>) => void): () => void;
    close(): void;
}
/** A `buy` that was sent, and what the page knew then. */
export interface SentOrder {
    readonly message: Readonly<Record<string, unknown>>;
    /** When it was sent, comparable with `Date.now()`. */
    readonly sentAt: number;
    /** When it was sent, in milliseconds of `performance.now()`: no user can set that clock, but it may stand still. */
    readonly tick: number;
    /** The log of the account when it was sent. */
    readonly before: readonly Readonly<Record<string, unknown>>[];
    readonly account: {
        /** The orders that were sent lately. */
        readonly orders: ReadonlyMap<unknown, SentOrder>;
        /** The messages about orders that have arrived lately; of a proposal only the latest one. */
        readonly log: ReadonlyMap<unknown, Readonly<Record<string, unknown>>>;
        /** Opens a socket on the account. */
        readonly socket: () => OrderSocket;
    };
}
