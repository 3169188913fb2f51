import type { TicksHistoryAnswer } from '../core/generated/messages.ts';
import type { CandlePoint, Gap, Point } from '../core/sockets/series-shape.ts';
/** What differs between the styles. */
export interface Kind<P> {
    /** The request for the stream that brings new points. */
    readonly stream: object;
    /** The points that a message of the stream brings, in order. */
    read(message: TicksHistoryAnswer): readonly P[];
    /** The points of a history, in order. */
    past(answer: TicksHistoryAnswer): readonly P[];
    join(history: readonly P[], live: readonly P[], known: number): Joined<P>;
    readonly append: (points: readonly P[], point: P) => readonly P[];
}
/** What a history and the stream beside it make of a series. */
interface Joined<P> {
    readonly points: readonly P[];
    readonly gap?: Gap | undefined;
    /** The history ends before the stream begins, so something may be missing between them. A later history has it. */
    readonly isBehind: boolean;
    /** All that the stream brings from now on comes after these points. */
    readonly isSettled: boolean;
}
/** Prices, one after the other. */
export declare function prices(symbol: string): Kind<Point>;
/** Candles of so many seconds. */
export declare function candles(symbol: string, granularity: number): Kind<CandlePoint>;
/**
 * Joins the points that a series has with a history that was asked from its last point on. The history has every point of its
 * first second, so it takes the place of those.
 * @param isFull whether the history has as many points as the series may have, so that it needs none before it
 */
export declare function bridge<P extends {
    readonly epoch: number;
}>(before: readonly P[], history: readonly P[], isFull: boolean): {
    readonly points: readonly P[];
    readonly gap?: Gap | undefined;
};
/**
 * Appends the prices of a stream to a history that was asked for after the stream had begun. Prices have no id, and a second may
 * have several, even equal ones, so the last second of the history is compared price by price.
 * @param known how many prices the stream had brought when the history arrived, which usually has them, too
 */
export declare function joinPrices(history: readonly Point[], live: readonly Point[], known: number): Joined<Point>;
export {};
