import { type SocketError } from './errors.ts';
import { type CandlePoint, type Gap, type Point } from './series-join.ts';
export type { CandlePoint, Gap, Point } from './series-join.ts';
/** The points of a style. */
export interface SeriesPoints {
    readonly ticks: Point;
    readonly candles: CandlePoint;
}
/** What a series shows. */
export interface SeriesOptions<S extends keyof SeriesPoints = keyof SeriesPoints> {
    readonly symbol: string;
    readonly style: S;
    /** The length of a candle in seconds; 60 by default. */
    readonly granularity?: 60 | 120 | 180 | 300 | 600 | 900 | 1800 | 3600 | 7200 | 14_400 | 28_800 | 86_400;
    /** How many points there are at most; 100 by default, and 5,000 at most. */
    readonly count?: number;
}
/** A series as it is now. */
export interface SeriesState<P> {
    /** Ordered by time, each once. Empty until the first history has arrived. */
    readonly points: readonly P[];
    /** Where points are missing, because the trading service had them no more after a reconnect. */
    readonly gap?: Gap | undefined;
    /** Why nothing new comes: the trading service refuses the symbol, or the connection has ended. */
    readonly error?: SocketError | undefined;
}
/** The newest prices or candles of a symbol. */
export interface Series<P> {
    /** The same object until something changes. */
    get(): SeriesState<P>;
    /**
     * Calls the listener after every change.
     * @returns a function that stops the calls
     */
    subscribe(listener: () => void): () => void;
    /** Ends the series. What `get()` returns stays. */
    stop(): void;
}
/** What a series needs of a socket, such as a `PublicSocket`. */
export interface SeriesSocket {
    request(message: never, options: {
        readonly signal: AbortSignal;
    }): Promise<object>;
    subscribe(message: never, listener: (message: never) => void, onError: (error: SocketError) => void): () => void;
}
/**
 * The newest prices or candles of a symbol, kept up to date. After a reconnect it asks for what came after its last point, not for
 * everything again.
 * ```ts
 * const chart = series(client.publicSocket(), { symbol: 'R_100', style: 'ticks', count: 500 })
 * chart.subscribe(() => draw(chart.get().points))
 * ```
 */
export declare function series<S extends keyof SeriesPoints>(socket: SeriesSocket, options: SeriesOptions<S>): Series<SeriesPoints[S]>;
