import type { ApiCall } from '../core/api/order.ts';
import type { Core } from '../core/core.ts';
/**
 * The key of an order, kept in the `sessionStorage` until the outcome of the order is known. A duplicated tab has a copy of it, so
 * whatever follows from a kept key is the same in all tabs: they send the same keys, and each of these the server sends only once.
 */
export declare class RememberedKey {
    #private;
    constructor(name: string);
    /**
     * Chooses the key of the order, and keeps it.
     * @param fresh the key of an order that is not kept
     * @throws ApiError if it must not be sent, or it cannot be told whether it may
     */
    choose(core: Core, call: ApiCall, fresh: string): Promise<string>;
    /** Whether an error says that the order may have been made in another session, or too long ago. */
    isOfOtherSession(error: unknown): boolean;
    /**
     * The outcome is known.
     * @param isRefused true if the order was not made: an equal one that has begun meanwhile is another one
     */
    forget(isRefused?: boolean): Promise<void>;
    /** The outcome will not become known, of which the page has been told: it may make the order again. */
    renew(): Promise<void>;
}
