import type { OrderSocket, SentOrder } from '../base/order-shape.ts';
import type { Message } from './socket-status.ts';
/** Remembers what `fate` must know to find out what became of an order. */
export declare class OrderLog {
    #private;
    /** @param socket opens a socket on the account */
    constructor(socket: () => OrderSocket);
    /** Returns a new `req_id`, which no earlier connection has had. */
    nextId(): number;
    /** Notes that a command with this text is sent. Undefined if it is no `buy`. */
    sent(text: string): SentOrder | undefined;
    /** Notes a message of the trading service. */
    take(message: Message): void;
}
