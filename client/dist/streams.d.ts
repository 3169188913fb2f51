import { SocketError } from './errors.ts';
import type { Link } from './link.ts';
import type { Message, SocketStatus } from './socket-status.ts';
/** One who wants a stream. */
interface Subscriber {
    readonly listener: (message: Message) => void;
    readonly onError: (error: SocketError) => void;
}
/** Subscriptions that outlive connections. Equal ones share one upstream, which refuses a second. */
export declare class Streams {
    #private;
    constructor(link: Link, nextId: () => number);
    /** @returns what ends it */
    subscribe(message: Message, listener: Subscriber['listener'], onError?: Subscriber['onError']): () => void;
    /** A new connection knows nothing. */
    up(): void;
    down({ state, code }: SocketStatus): void;
    take(message: Message): void;
}
export {};
