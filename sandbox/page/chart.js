/**
 * The price chart: a canvas that is sharp on every screen, and a crosshair for the pointer and the arrow keys.
 *
 * There is no chart library here. The best kept one that draws candles, lightweight-charts 5, has 193 KiB minified, more
 * than twice the scripts of this page. It has no keyboard access, and it writes a style element for the logo that credits
 * its maker, which the page's Content-Security-Policy forbids. A page with a build step may well decide otherwise.
 */
import { paint, viewOf } from './chart-painter.js'
import { clock, decimal } from './format.js'

const EASE_MS = 220
/** The most steps that the arrow keys take from one end of the chart to the other. */
const STEPS = 120
const calm = matchMedia('(prefers-reduced-motion: reduce)')

export class PriceChart {
  #canvas
  #context
  #colors
  #size = { width: 0, height: 0 }
  #frame
  /** What is shown: { points, digits, style, spanMs, lengthMs }. */
  #series = { points: [], digits: 2, style: 'line', spanMs: 0, lengthMs: 0 }
  #mark
  /** Where the crosshair is: { x } of the pointer, or { time } for the keys. */
  #cursor
  #ease = { from: undefined, since: 0 }
  #shown

  constructor(canvas) {
    this.#canvas = canvas
    this.#context = canvas.getContext('2d')
    new ResizeObserver(() => this.#resize()).observe(canvas)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#recolor())
    canvas.addEventListener('pointermove', ({ offsetX }) => this.#moveTo({ x: offsetX }))
    canvas.addEventListener('pointerleave', () => this.#moveTo(undefined))
    canvas.addEventListener('focus', () => this.#describe())
    canvas.addEventListener('blur', () => this.#moveTo(undefined))
    canvas.addEventListener('keydown', (event) => this.#press(event))
    this.#recolor()
  }

  /**
   * Shows these points. A new last price moves smoothly to its position.
   * @param series - { points, digits, style: 'line' | 'candles', spanMs, lengthMs: that of a candle }
   */
  show(series) {
    const isNext = series.style === 'line' && this.#series.points.length > 0 && series.spanMs === this.#series.spanMs
    const isFirst = this.#series.points.length === 0
    this.#series = series
    if (isFirst) this.#describe()
    this.#ease = { from: isNext && !calm.matches ? this.#shown : undefined, since: performance.now() }
    this.#drawSoon()
  }

  /** A horizontal line for an open contract: { price, label, tone } or undefined. */
  mark(mark) {
    this.#mark = mark
    this.#drawSoon()
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#canvas
    const ratio = devicePixelRatio || 1
    this.#size = { width, height }
    this.#canvas.width = Math.round(width * ratio)
    this.#canvas.height = Math.round(height * ratio)
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0)
    this.#draw()
  }

  #recolor() {
    const style = getComputedStyle(document.documentElement)
    const names = ['ink', 'muted', 'line', 'surface', 'chart', 'up', 'down']
    this.#colors = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]))
    this.#colors.font = style.fontFamily
    this.#drawSoon()
  }

  #moveTo(cursor) {
    this.#cursor = cursor
    this.#drawSoon()
  }

  /** The arrow keys, PageUp, PageDown, Home and End move the crosshair, as for any slider. Escape removes it. */
  #press(event) {
    const { points } = this.#series
    const last = points.length - 1
    if (last < 0 || event.altKey || event.ctrlKey || event.metaKey) return
    const step = Math.max(1, Math.round(last / STEPS))
    const page = Math.max(step, Math.round(last / 10))
    const at = this.#index() ?? last
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
    if (event.key === 'Escape') this.#moveTo(undefined)
    else if (!Object.hasOwn(targets, event.key)) return
    else this.#moveTo({ time: points[Math.max(0, Math.min(last, targets[event.key]))].time })
    event.preventDefault()
    this.#describe()
  }

  /** The index of the point at the crosshair; undefined without one. */
  #index() {
    const { points } = this.#series
    if (this.#cursor === undefined || points.length === 0) return undefined
    const { x, time = viewOf(this.#scene()).timeAt(x) } = this.#cursor
    let nearest = 0
    for (const [index, point] of points.entries())
      if (Math.abs(point.time - time) < Math.abs(points[nearest].time - time)) nearest = index
    return nearest
  }

  /** Tells assistive technology the point. Not called for new prices, since each call is spoken. */
  #describe() {
    const { points } = this.#series
    const index = this.#index() ?? points.length - 1
    this.#canvas.ariaValueMax = String(Math.max(0, points.length - 1))
    this.#canvas.ariaValueNow = String(Math.max(0, index))
    this.#canvas.ariaValueText = index < 0 ? 'no prices yet' : this.#textsOf(points[index])[0]
  }

  /** The point at the crosshair in words, from the longest text to the shortest. */
  #textsOf({ time, open, high, low, price }) {
    const [o, h, l, c] = [open, high, low, price].map((value) => decimal(value, this.#series.digits))
    const short = `${c} at ${clock(time)}`
    if (this.#series.style === 'line') return [short]
    return [`${clock(time)}: open ${o}, high ${h}, low ${l}, close ${c}`, `O ${o} H ${h} L ${l} C ${c}`, short]
  }

  #drawSoon() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined
      this.#draw()
    })
  }

  /** The position of the last price on its way from the one before. */
  #eased(target) {
    const progress = Math.min(1, (performance.now() - this.#ease.since) / EASE_MS)
    if (this.#ease.from === undefined || progress >= 1) return target
    this.#drawSoon()
    return this.#ease.from + (target - this.#ease.from) * (1 - (1 - progress) ** 3)
  }

  #scene() {
    return {
      ...this.#series,
      ...this.#size,
      context: this.#context,
      colors: this.#colors,
      mark: this.#mark,
      shown: this.#shown,
    }
  }

  #draw() {
    const { points } = this.#series
    this.#context.clearRect(0, 0, this.#size.width, this.#size.height)
    if (this.#size.width === 0 || points.length < 2) return
    this.#shown = this.#eased(points.at(-1).price)
    const index = this.#index()
    const cursor = index === undefined ? undefined : { point: points[index], texts: this.#textsOf(points[index]) }
    paint({ ...this.#scene(), cursor })
  }
}
