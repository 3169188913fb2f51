import type { SentOrder } from '../core/base/order-shape.ts';
import type { Message } from '../core/sockets/socket-status.ts';
/**
 * By how many milliseconds the clock of the user has moved against the one that no user can set: by how much it was set, and how
 * long the machine slept, if the other one stops then.
 * @param to now by default
 */
export declare function movedMs(from: Pick<SentOrder, 'sentAt' | 'tick'>, to?: typeof from): number;
/** Notes which contract an order has bought. */
export declare function noteContract(order: SentOrder, contractId: string): void;
/** What is known of an order: the first message in reply to it, if there is one, and the contract that it has bought. */
export declare function outcomeOf(order: SentOrder): {
    readonly reply?: Message | undefined;
    readonly contractId?: string | undefined;
};
/**
 * The other orders on the account of an order, whose contracts could be taken for its own.
 * @param executedMs within which time an order is executed
 * @returns the contracts that are known to be theirs, and those without a known outcome that may have bought, or may still buy, a
 * contract that fits
 */
export declare function rivalsOf(order: SentOrder, executedMs: number): {
    readonly contracts: ReadonlySet<string | undefined>;
    readonly pending: readonly SentOrder[];
};
