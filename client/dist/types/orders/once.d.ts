import type { makeOnce, OnceOptions } from '../core/api/order.ts';
/**
 * `once` where the package has to find out what became of the order, or to remember it.
 * @param make that of the page's core: this module may have a copy of its own of anything that it imports
 */
export declare function orderOnce<Answer>(make: typeof makeOnce, order: (idempotencyKey: string) => Promise<Answer>, { isMade, remember }: OnceOptions): Promise<Answer | undefined>;
