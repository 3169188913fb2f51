import type { SentOrder } from '../core/base/order-shape.ts';
import type { SocketError } from '../core/client.ts';
import type { Fate } from './fate-shape.ts';
/** Looks for the contract of an order on its account. */
export declare class Search {
    #private;
    constructor(order: SentOrder, error: SocketError, signal: AbortSignal | undefined);
    run(): Promise<Fate>;
}
