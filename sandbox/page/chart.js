/**
 * The price chart. `lightweight-charts` draws it; what that library lacks is here: the arrow keys, and the price in words. The
 * library is loaded with the first prices, since the page should not wait for it.
 */
import { chartOptions, markOptions, roundTimes, seriesOptions } from './chart-look.js'
import { el, setText } from './dom.js'
import { clock, decimal } from './format.js'

/** The most steps that the arrow keys take from one end of the chart to the other. */
const STEPS = 120

export class PriceChart {
  #box
  #reading = el('p', { class: 'chart-reading', 'aria-hidden': 'true', hidden: true })
  #library
  #chart
  /** The series of the library: { line, candles }. One of them is empty. */
  #drawn
  /** What is shown: { points, digits, style: 'line' | 'candles' }. */
  #shown = { points: [], digits: 2, style: 'line' }
  #mark
  #markLine
  /** The time of the point that the keys have chosen. */
  #chosen

  /** @param box an element with the role `slider` */
  constructor(box) {
    this.#box = box
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#restyle())
    box.addEventListener('focus', () => this.#describe())
    box.addEventListener('blur', () => this.#choose(undefined))
    box.addEventListener('keydown', (event) => this.#press(event))
  }

  /** @param shown - { points, digits, style: 'line' | 'candles' } */
  show({ points = [], digits = 2, style = 'line' }) {
    const before = this.#shown
    this.#shown = { points: onePerSecond(points), digits, style }
    if (before.points.length === 0) this.#describe()
    if (points.length > 0) void this.#load()
    if (digits !== before.digits) this.#restyle()
    this.#draw()
    if (style !== before.style) this.#drawMark()
  }

  /** A horizontal line for an open contract: { price, label, tone } or undefined. */
  mark(mark) {
    if (JSON.stringify(mark) === JSON.stringify(this.#mark)) return
    this.#mark = mark
    this.#drawMark()
  }

  /** Loads the library once. If that fails, the page still shows the price, and tries again with the next one. */
  async #load() {
    this.#library ??= import('./chart-library.js').catch(() => (this.#library = undefined))
    const library = await this.#library
    if (library === undefined || this.#chart !== undefined) return
    this.#chart = library.createChartEx(this.#box, roundTimes(library), chartOptions())
    const options = seriesOptions(this.#shown.digits)
    // The line of a contract is always in view.
    const autoscaleInfoProvider = (ofPoints) => withMark(ofPoints(), this.#mark?.price)
    this.#drawn = {
      line: this.#chart.addSeries(library.AreaSeries, { ...options.line, autoscaleInfoProvider }),
      candles: this.#chart.addSeries(library.CandlestickSeries, { ...options.candles, autoscaleInfoProvider }),
    }
    this.#box.append(this.#reading)
    this.#chart.subscribeCrosshairMove(({ time }) => this.#read(this.#indexOf(time * 1000)))
    this.#draw()
    this.#drawMark()
  }

  #restyle() {
    if (this.#chart === undefined) return
    const options = seriesOptions(this.#shown.digits)
    this.#chart.applyOptions(chartOptions())
    for (const [style, series] of Object.entries(this.#drawn)) series.applyOptions(options[style])
    this.#drawMark()
  }

  #draw() {
    if (this.#chart === undefined) return
    const { points, style } = this.#shown
    const data = points.map(({ time, open, high, low, price }) =>
      style === 'line' ? { time: time / 1000, value: price } : { time: time / 1000, open, high, low, close: price },
    )
    for (const [name, series] of Object.entries(this.#drawn)) series.setData(name === style ? data : [])
    this.#chart.timeScale().fitContent()
    if (this.#chosen !== undefined) this.#choose(this.#indexOf(this.#chosen))
  }

  #drawMark() {
    this.#markLine?.remove()
    this.#markLine = undefined
    if (this.#mark === undefined || this.#chart === undefined) return
    const series = this.#drawn[this.#shown.style]
    const line = series.createPriceLine(markOptions(this.#mark))
    this.#markLine = { remove: () => series.removePriceLine(line) }
  }

  /** The arrow keys, PageUp, PageDown, Home and End move the crosshair, as for any slider. Escape removes it. */
  #press(event) {
    const last = this.#shown.points.length - 1
    if (last < 0 || event.altKey || event.ctrlKey || event.metaKey) return
    const step = Math.max(1, Math.round(last / STEPS))
    const page = Math.max(step, Math.round(last / 10))
    const at = this.#indexOf(this.#chosen) ?? last
    const targets = {
      ArrowLeft: at - step,
      ArrowDown: at - step,
      ArrowRight: at + step,
      ArrowUp: at + step,
      PageDown: at - page,
      PageUp: at + page,
      Home: 0,
      End: last,
    }
    if (event.key === 'Escape') this.#choose(undefined)
    else if (!Object.hasOwn(targets, event.key)) return
    else this.#choose(Math.max(0, Math.min(last, targets[event.key])))
    event.preventDefault()
    this.#describe()
  }

  /** Moves the crosshair to a point; undefined: removes it. */
  #choose(index) {
    const point = this.#shown.points[index]
    this.#chosen = point?.time
    if (point) this.#chart?.setCrosshairPosition(point.price, point.time / 1000, this.#drawn[this.#shown.style])
    else this.#chart?.clearCrosshairPosition()
    this.#read(index)
  }

  /** The index of the point of this time; undefined if there is none. */
  #indexOf(time) {
    const index = this.#shown.points.findLastIndex((point) => point.time === time)
    return index < 0 ? undefined : index
  }

  /** Shows the point under the crosshair as a text in the chart. */
  #read(index) {
    this.#reading.hidden = index === undefined
    if (index !== undefined) setText(this.#reading, this.#inWords(index))
  }

  /** Tells assistive technology the point. Not called for new prices, since each call is spoken. */
  #describe() {
    const last = this.#shown.points.length - 1
    const index = this.#indexOf(this.#chosen) ?? last
    this.#box.ariaValueMax = String(Math.max(0, last))
    this.#box.ariaValueNow = String(Math.max(0, index))
    this.#box.ariaValueText = index < 0 ? 'no prices yet' : this.#inWords(index)
  }

  #inWords(index) {
    const { points, digits, style } = this.#shown
    const { time, open, high, low, price } = points[index]
    const [o, h, l, c] = [open, high, low, price].map((value) => decimal(value, digits))
    return style === 'line' ? `${c} at ${clock(time)}` : `${clock(time)}: open ${o}, high ${h}, low ${l}, close ${c}`
  }
}

/** The last point of each second, because the library has one place for each. */
function onePerSecond(points) {
  return points.filter(({ time }, index) => points[index + 1]?.time !== time)
}

function withMark(info, price) {
  if (info === null || price === undefined) return info
  const { minValue, maxValue } = info.priceRange
  return { ...info, priceRange: { minValue: Math.min(minValue, price), maxValue: Math.max(maxValue, price) } }
}
