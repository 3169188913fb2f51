import type { SentOrder } from '../core/base/order-shape.ts';
import { type FoundContract } from './contracts.ts';
import { type Sameness } from './decimal.ts';
/** When an order can have been executed, in seconds of the clock of the trading service: infinite while that is not known. */
export interface Period {
    readonly from: number;
    readonly to: number;
    /** When it was executed, if it was and if the clock of the user has been disturbed once at most since. */
    readonly likely: readonly {
        readonly from: number;
        readonly to: number;
    }[];
}
/** What an order would buy. */
interface Terms {
    readonly type: string | undefined;
    readonly symbol: string | undefined;
    /** What it may cost at most. The amounts are as they were given: numbers or texts. */
    readonly price: unknown;
    /** What it costs, where that is fixed: one of these. */
    readonly stakes: readonly unknown[];
    readonly payout: unknown;
    readonly longcode: string | undefined;
}
/** What an order would buy, as far as the page has heard of it. */
export declare function termsOf({ message, before }: SentOrder): Terms;
/** Whether a contract has these terms, and was bought in this period: `maybe` where the messages do not say enough. */
export declare function fits(terms: Terms, contract: FoundContract, period: Period): Sameness;
/** Whether a contract that one order buys could be taken for that of the other. */
export declare function areAlike(terms: Terms, other: Terms): boolean;
export {};
