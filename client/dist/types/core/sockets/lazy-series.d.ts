import type { Series, SeriesOptions, SeriesPoints, SeriesSocket } from './series-shape.ts';
/** A series whose code is loaded when the first one is made, so that it costs no page anything that has none. */
export declare function lazySeries<S extends keyof SeriesPoints>(socket: SeriesSocket, options: SeriesOptions<S>): Series<SeriesPoints[S]>;
