import { SocketError } from './errors.ts';
import { type RequestOptions } from './exchange.ts';
import { type LinkOwner } from './link.ts';
import type { Message, SocketStatus } from './socket-status.ts';
/** A socket for market data. Equal ones of a page share a connection, which closes after the last of them. */
export interface PublicSocket {
    /** How it is doing: the same object until that changes. */
    status(): SocketStatus;
    /** Calls the listener after every change of the status. @returns what ends that */
    onStatus(listener: () => void): () => void;
    /**
     * Asks once, as soon as there is a connection, and resolves with the response. A message that may change something
     * is sent as a `command`.
     * @throws SocketError; the signal's reason when the caller aborted
     */
    request<T = Message>(message: Message, options?: RequestOptions): Promise<T>;
    /**
     * Follows a stream: `subscribe: 1` is added, and every new connection asks for it again, once. The listener therefore
     * gets what comes first, such as a history, more than once.
     * @param onError told of a refusal, and of the end of the connection; reported as an uncaught error unless given
     * @returns what ends it
     */
    subscribe<T = Message>(message: Message, listener: (message: T) => void, onError?: (error: SocketError) => void): () => void;
    /** Every message that comes, also one that nobody waits for any more. @returns what ends that */
    listen(listener: (message: Message) => void): () => void;
    /** Ends what was begun on this socket. */
    close(): void;
}
/** A socket for trading on one account. */
export interface TradingSocket extends PublicSocket {
    /**
     * Sends what may change something (buy, sell, cancel, …): once, now or never. After 3 s of silence the connection has
     * a second to show that it works.
     * @throws SocketError with the code `not_sent`, when it was not and will not be; with `outcome: 'unknown'`, when it
     *   was, and nobody knows what became of it; with the trading service's own code when it refused
     */
    command<T = Message>(message: Message, options?: RequestOptions): Promise<T>;
}
/** The sockets of a page, by address. */
export declare class Sockets {
    #private;
    /** Joins the connection to an address, or opens one. */
    open(path: string, owner: Pick<LinkOwner, 'connect' | 'confirm'>): TradingSocket;
    /** Closes every connection at once. */
    close(): void;
}
