import type { Series, SeriesOptions, SeriesPoints, SeriesSocket } from '../core/sockets/series-shape.ts';
export type * from '../core/sockets/series-shape.ts';
/**
 * The newest prices or candles of a symbol, kept up to date. After a reconnect it asks for what came after its last point, not for
 * everything again.
 * ```ts
 * const chart = series(client.publicSocket(), { symbol: 'R_100', style: 'ticks', count: 500 })
 * chart.subscribe(() => draw(chart.get().points))
 * ```
 */
export declare function series<S extends keyof SeriesPoints>(socket: SeriesSocket, options: SeriesOptions<S>): Series<SeriesPoints[S]>;
