import type { SentOrder } from '../core/base/order-shape.ts';
import type { SocketError } from '../core/base/errors.ts';
import { type FoundContract } from './contracts.ts';
/** What became of an order whose answer was lost. */
export type Fate = 
/** It was executed: exactly one contract on the account fits it, which was not known before. */
{
    readonly is: 'made';
    readonly contract: FoundContract;
}
/**
 * Nothing on the account fits it since it was sent (`since`, comparable with `Date.now()`), up to now. This does not prove that it
 * was not executed, or will not be.
 */
 | {
    readonly is: 'not_seen';
    readonly since: number;
}
/** It cannot be told which of these contracts it has bought, if any. */
 | {
    readonly is: 'ambiguous';
    readonly candidates: readonly FoundContract[];
};
/** Looks for the contract of an order on its account. */
export declare class Search {
    #private;
    constructor(order: SentOrder, error: SocketError, signal: AbortSignal | undefined);
    run(): Promise<Fate>;
}
