import type { SeriesSocket } from '../core/sockets/series-shape.ts';
/** Tells which points are ahead of the clock of the server: upstream may send one of another time. */
export declare class Ahead {
    #private;
    /** @param seconds the length of a candle, 0 for prices */
    constructor(socket: SeriesSocket, seconds: number, signal: AbortSignal, onMeasured: () => void);
    /** Notes that points have arrived. */
    note(points: readonly {
        readonly epoch: number;
    }[]): void;
    /** The points that are shown now, and those that are left out until their time. */
    split<P extends {
        readonly epoch: number;
    }>(points: readonly P[]): readonly [shown: readonly P[], later: readonly P[]];
    /** How long to wait until a point that is left out may be shown, in milliseconds. */
    waitMs({ epoch }: {
        readonly epoch: number;
    }): number;
}
