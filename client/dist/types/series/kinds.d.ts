import type { TicksHistoryAnswer } from '../core/base/messages.ts';
import type { CandlePoint, Point } from '../core/sockets/series-shape.ts';
import { type Joined } from './series-join.ts';
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
/** Prices, one after the other. */
export declare function prices(symbol: string): Kind<Point>;
/** Candles of so many seconds. */
export declare function candles(symbol: string, granularity: number): Kind<CandlePoint>;
