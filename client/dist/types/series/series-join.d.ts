import type { CandlePoint, Gap, Point } from '../core/sockets/series-shape.ts';
/** What a history and the stream beside it make of a series. */
export interface Joined<P> {
    readonly points: readonly P[];
    readonly gap?: Gap | undefined;
    /** The history ends before the stream begins, so something may be missing between them. A later history has it. */
    readonly isBehind: boolean;
    /** All that the stream brings from now on comes after these points. */
    readonly isSettled: boolean;
}
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
/**
 * Appends the states of candles that a stream has brought to a history that was asked for after the stream had begun. The history
 * decides on candles that it has closed. The newest state of the stream counts for the others: it has, or soon will have, all that
 * the history knew.
 */
export declare function joinCandles(history: readonly CandlePoint[], live: readonly CandlePoint[]): Joined<CandlePoint>;
/** The points with another one, after those that are not later: it may have arrived late. */
export declare function withPoint<P extends {
    readonly epoch: number;
}>(points: readonly P[], point: P): readonly P[];
/** The candles with another one, or with a newer state of one of them. */
export declare function withCandle(candles: readonly CandlePoint[], candle: CandlePoint): readonly CandlePoint[];
