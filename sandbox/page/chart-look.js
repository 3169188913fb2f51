/** How the price chart looks: its options for the chart library, in the colours of the page. */
import { clock, decimal } from './format.js'

const calm = matchMedia('(prefers-reduced-motion: reduce)')
/** Of the library's enumeration LastPriceAnimationMode. */
const [NO_ANIMATION, ON_NEW_PRICE] = [0, 2]
/** The library's weight of a point that begins no new minute, and one between that and the weight of a new minute. */
const [OF_A_SECOND, OF_TEN_SECONDS] = [10, 15]
/** Of the library's enumeration TickMarkType: a time without seconds. */
const MINUTES = 3

function colorsOfPage() {
  const style = getComputedStyle(document.documentElement)
  const names = ['ink', 'muted', 'line', 'surface', 'edge', 'chart', 'up', 'down']
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]))
}

/** The options of the whole chart. Times are those of the user. */
export function chartOptions() {
  const { ink, muted, line, edge } = colorsOfPage()
  const crosshairLine = { color: muted, labelBackgroundColor: ink }
  return {
    autoSize: true,
    layout: {
      background: { color: 'transparent' },
      textColor: muted,
      fontFamily: getComputedStyle(document.documentElement).fontFamily,
      // The logo comes with a style element, which the Content-Security-Policy refuses. The page has a link instead.
      attributionLogo: false,
    },
    grid: { vertLines: { color: line }, horzLines: { color: line } },
    crosshair: { vertLine: crosshairLine, horzLine: crosshairLine },
    // A label at the edge would be cut off.
    rightPriceScale: { borderColor: edge, entireTextOnly: true },
    timeScale: {
      borderColor: edge,
      timeVisible: true,
      // An hour of ticks has less than a pixel for each.
      minBarSpacing: 0.01,
      tickMarkFormatter: labelOf,
    },
    localization: { timeFormatter: (seconds) => clock(seconds * 1000) },
    // The wheel and the finger scroll the page, and the form above chooses the range.
    handleScroll: false,
    handleScale: false,
  }
}

/** A time axis with round times: whole minutes, and between them every ten seconds. */
export function roundTimes({ defaultHorzScaleBehavior }) {
  return new (class extends defaultHorzScaleBehavior() {
    fillWeightsForPoints(points, from) {
      super.fillWeightsForPoints(points, from)
      for (let index = Math.max(1, from); index < points.length; index++) {
        const isNext = tens(points[index].originalTime) !== tens(points[index - 1].originalTime)
        if (isNext && points[index].timeWeight === OF_A_SECOND) points[index].timeWeight = OF_TEN_SECONDS
      }
    }
  })()
}

const tens = (seconds) => Math.floor(seconds / 10)

/** 12:05 or 12:05:10. No label at times between, such as that of the first point. */
function labelOf(seconds, type) {
  if (type === MINUTES) return clock(seconds * 1000).slice(0, 5)
  return type === undefined ? clock(tens(seconds) * 10_000) : ''
}

/** The options of the line and of the candles. */
export function seriesOptions(digits) {
  const { surface, chart, up, down } = colorsOfPage()
  const format = {
    priceFormat: { type: 'custom', minMove: 10 ** -digits, formatter: (price) => decimal(price, digits) },
  }
  return {
    line: {
      ...format,
      lineColor: chart,
      topColor: `color-mix(in srgb, ${chart} 16%, transparent)`,
      bottomColor: 'transparent',
      lineWidth: 2,
      lastPriceAnimation: calm.matches ? NO_ANIMATION : ON_NEW_PRICE,
    },
    // Rising candles are hollow, so that nobody needs to tell the colours apart.
    candles: {
      ...format,
      upColor: surface,
      borderUpColor: up,
      wickUpColor: up,
      downColor: down,
      borderDownColor: down,
      wickDownColor: down,
      priceLineColor: chart,
    },
  }
}

/** The line of an open contract: { price, label, tone }. */
export const markOptions = ({ price, label, tone }) => ({
  price,
  title: label,
  color: colorsOfPage()[tone],
  lineWidth: 1,
  lineStyle: 2,
})
