import type { SentOrder } from '../core/base/order-shape.ts';
import { type FoundContract } from './contracts.ts';
/** When an order can have been executed, in seconds of the clock of the trading service. Infinite while that is not known. */
export interface Period {
    readonly from: number;
    readonly to: number;
}
/** Whether a contract can be the one that an order has bought: `maybe` where the messages do not say enough. */
export type Fit = 'yes' | 'maybe' | 'no';
/** What an order would buy. */
export interface Terms {
    readonly type: string | undefined;
    readonly symbol: string | undefined;
    /** What it may cost at most. */
    readonly price: number;
    /** What it costs, where that is fixed: one of these. */
    readonly stakes: readonly number[];
    readonly payout: number | undefined;
    readonly longcode: string | undefined;
}
export declare function termsOf({ message, before }: SentOrder): Terms;
/** Whether a contract has these terms, and was bought in this period. */
export declare function fits(terms: Terms, contract: FoundContract, period: Period): Fit;
/** Whether a contract that one order buys could be taken for that of the other. */
export declare function areAlike(terms: Terms, other: Terms): boolean;
