import { SocketError } from '../base/errors.ts';
import type { Link } from './link.ts';
import type { Message, SocketStatus } from './socket-status.ts';
/**
 * Streams that survive reconnects. Equal ones share one subscription, because the trading service refuses a second. It also
 * refuses some that are not equal, such as the ticks of a symbol and a history that goes on with them: where more links
 * are allowed, the later one gets another link.
 */
export declare class Streams {
    #private;
    /**
     * @param openLink opens the link with this number, from 0
     * @param more how many links there may be besides the first
     */
    constructor(openLink: (number: number) => Link, nextId: () => number, more: number);
    /** The first link, which carries all that is no stream. */
    get link(): Link;
    /** The status of a link that is not open, if any, so that `open` means that every stream is up to date. */
    get status(): SocketStatus;
    /**
     * @returns a function that stops the stream
     * @throws TypeError if the message may change something
     */
    subscribe(message: Message, listener: (message: Message) => void, onError?: (error: SocketError) => void): () => void;
    /** Requests every stream of a link on its new connection. */
    up(link: Link): void;
    /** Forgets the subscription ids of a lost connection. After the last connection of a link, its streams end with an error. */
    down(link: Link, { state, code }: SocketStatus): void;
    /** Passes a message to the subscribers of its stream. */
    take(link: Link, message: Message): void;
}
