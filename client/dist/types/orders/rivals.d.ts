import type { SentOrder } from '../core/base/order-shape.ts';
import { type Members } from './contracts.ts';
/** Notes which contract an order has bought. */
export declare function noteContract(order: SentOrder, contractId: string): void;
/** What is known of an order: the first message in reply to it, if there is one, and the contract that it has bought. */
export declare function outcomeOf(order: SentOrder): {
    readonly reply?: Members | undefined;
    readonly contractId?: string | undefined;
};
/** The other orders on the account of an order, whose contracts could be taken for its own. */
export declare class Rivals {
    #private;
    /** @param executedMs within which time an order is executed */
    constructor(order: SentOrder, executedMs: number);
    /** The contracts that are known to be those of other orders. */
    contracts(): ReadonlySet<string | undefined>;
    /** The orders without a known outcome that may have bought, or may still buy, a contract that fits. */
    pending(): SentOrder[];
}
/** The ids of all contracts that a message names, as texts: no number is that of a neighbour, and words are ids, too. */
export declare function contractIdsIn(message: Members): string[];
