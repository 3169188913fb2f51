/** The parts of the chart library that this page uses. A file of its own, so that the price does not wait for it. */
export { AreaSeries, CandlestickSeries, createChartEx, defaultHorzScaleBehavior } from 'lightweight-charts'
