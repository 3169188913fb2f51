import { SocketError } from './errors.ts';
import type { Link } from './link.ts';
import type { Message, SocketStatus } from './socket-status.ts';
/** A listener of a stream. */
interface Subscriber {
    readonly listener: (message: Message) => void;
    readonly onError: (error: SocketError) => void;
}
/** Streams that survive reconnects. Equal ones share one subscription, because the trading service refuses a second. */
export declare class Streams {
    #private;
    constructor(link: Link, nextId: () => number);
    /**
     * @returns a function that stops the stream
     * @throws TypeError if the message may change something
     */
    subscribe(message: Message, listener: Subscriber['listener'], onError?: Subscriber['onError']): () => void;
    /** Requests every stream on a new connection. */
    up(): void;
    /** Forgets the subscription ids of a lost connection. After the last connection, every stream ends with an error. */
    down({ state, code }: SocketStatus): void;
    /** Passes a message to the subscribers of its stream. */
    take(message: Message): void;
}
export {};
