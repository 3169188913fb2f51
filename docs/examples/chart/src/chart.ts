import { createChart, LineSeries, type UTCTimestamp } from 'lightweight-charts'
import { createClient } from 'trading-bff-client'

const chart = createChart(document.querySelector<HTMLElement>('#chart')!, {
  autoSize: true,
  // The logo comes with a style element, which the Content-Security-Policy refuses. The footer of the page has the link.
  layout: { attributionLogo: false },
  timeScale: { timeVisible: true, tickMarkFormatter: localTime },
  localization: { timeFormatter: localTime },
})
const line = chart.addSeries(LineSeries)
const prices = createClient().publicSocket().series({ symbol: 'R_100', style: 'ticks', count: 500 })

prices.subscribe(() => {
  const { points, gap, error } = prices.get()
  // A second may have several prices, and the library takes one: the last.
  const last = new Map(points.map(({ epoch, quote }) => [epoch, { time: epoch as UTCTimestamp, value: quote }]))
  line.setData([...last.values()])
  const missing = gap && `No prices from ${localTime(gap.from)} to ${localTime(gap.to)}`
  document.querySelector('[role=status]')!.textContent = error?.message ?? missing ?? ''
})

/** Without it the library shows UTC. */
function localTime(seconds: unknown): string {
  return new Date(Number(seconds) * 1000).toLocaleTimeString()
}
