import type { SocketError } from '../base/errors.ts';
import type { ServerTime } from '../base/server-clock.ts';
import type { SocketStatus } from './socket-status.ts';
/** A price of a series. */
export interface Point {
    /** In seconds since 1970. */
    readonly epoch: number;
    readonly quote: number;
}
/** The prices of a period. The last candle of a series is still open: it changes until the next one begins. */
export interface CandlePoint {
    /** The beginning of the period, in seconds since 1970. */
    readonly epoch: number;
    readonly open: number;
    readonly high: number;
    readonly low: number;
    readonly close: number;
}
/** A period of which the points are missing, in seconds since 1970: the points at its ends are there. */
export interface Gap {
    readonly from: number;
    readonly to: number;
}
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
    readonly granularity?: 60 | 120 | 180 | 300 | 600 | 900 | 1800 | 3600 | 7200 | 14_400 | 28_800 | 86_400 | undefined;
    /** How many points there are at most; 100 by default, and 5,000 at most. */
    readonly count?: number | undefined;
}
/** A series as it is now. */
export interface SeriesState<P> {
    /** Ordered by time, whatever has arrived late, and each once. Empty until the first history has arrived. */
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
    /** `serverNow` of the client; without it, no point is ahead of its time. */
    readonly serverNow?: () => ServerTime | undefined;
    /** Those of the socket; without them, the series does not notice that the page closes it. */
    readonly status?: () => SocketStatus;
    readonly onStatus?: (listener: () => void) => () => void;
    subscribe(message: never, listener: (message: never) => void, onError: (error: SocketError) => void): () => void;
}
