import type { SentOrder } from '../core/base/order-shape.ts';
import { type FoundContract } from './contracts.ts';
/** In seconds of the clock of the trading service. */
export interface Interval {
    readonly from: number;
    readonly to: number;
}
/** When an order can have been executed: infinite while that is not known. */
export interface Period extends Interval {
    /** When it was executed, if it was and if the clock of the user has been disturbed once at most since. */
    readonly likely: readonly Interval[];
}
/** Whether a contract can be the one that an order has bought: `maybe` where the messages do not say enough. */
export type Fit = 'yes' | 'maybe' | 'no';
/** What an order would buy. */
export interface Terms {
    readonly type: string | undefined;
    readonly symbol: string | undefined;
    /** What it may cost at most. The amounts are as they were given: numbers or texts. */
    readonly price: unknown;
    /** What it costs, where that is fixed: one of these. */
    readonly stakes: readonly unknown[];
    readonly payout: unknown;
    readonly longcode: string | undefined;
}
export declare function termsOf({ message, before }: SentOrder): Terms;
/** Whether a contract has these terms, and was bought in this period. */
export declare function fits(terms: Terms, contract: FoundContract, period: Period): Fit;
/** Whether a contract that one order buys could be taken for that of the other. */
export declare function areAlike(terms: Terms, other: Terms): boolean;
