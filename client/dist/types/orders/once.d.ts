import type { KeyChoices } from '../core/api/key-choice.ts';
import type { once as coreOnce, OnceOptions } from '../core/client.ts';
type Once = typeof coreOnce;
/**
 * `once` where the package has to find out what became of the order, or to remember it.
 * @param once that of the page's core, and its keys: this module may have a copy of its own of anything that it imports
 */
export declare function orderOnce<Answer>(once: Once, keyChoices: KeyChoices, order: (idempotencyKey: string) => Promise<Answer>, { isMade, remember }: OnceOptions): Promise<Answer | undefined>;
export {};
