import type { OrderSocket, SentOrder } from '../base/order-shape.ts';
import type { Message } from './socket-status.ts';
/** Remembers what `fate` must know to find out what became of an order. */
export interface OrderLog {
    /** Returns a new `req_id`, which no earlier connection has had. */
    readonly nextId: () => number;
    /** Notes that a command with this text is sent. Undefined if it is no `buy`. */
    readonly sent: (text: string) => SentOrder | undefined;
    readonly take: (message: Message) => void;
}
/** @param socket opens a socket on the account */
export declare function orderLog(socket: () => OrderSocket): OrderLog;
