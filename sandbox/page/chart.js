/** A small line chart on a canvas, sharp on every screen, in the page's colours, without motion for users who prefer that. */
import { clock } from './dom.js'

const KEEP = 120
const EASE_MS = 220
const TAG = 22
const PAD = { top: 14, bottom: 26, left: 2 }
const calm = matchMedia('(prefers-reduced-motion: reduce)')

export class PriceChart {
  #canvas
  #context
  #points = []
  #digits = 2
  #mark
  #pointer
  #shown
  #easeFrom
  #easeStart = 0
  #frame
  #colors
  #size = { width: 0, height: 0 }

  constructor(canvas) {
    this.#canvas = canvas
    this.#context = canvas.getContext('2d')
    new ResizeObserver(() => this.#resize()).observe(canvas)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#recolor())
    canvas.addEventListener('pointermove', (event) => this.#point(event.offsetX))
    canvas.addEventListener('pointerleave', () => this.#point(undefined))
    this.#recolor()
  }

  /** points: [{ time (ms), price }] in order */
  set(points, digits) {
    this.#points = points.slice(-KEEP)
    this.#digits = digits
    this.#shown = this.#points.at(-1)?.price
    this.#easeFrom = undefined
    this.#drawSoon()
  }

  push(point) {
    this.#points.push(point)
    if (this.#points.length > KEEP) this.#points.shift()
    this.#easeFrom = calm.matches ? undefined : this.#shown
    this.#easeStart = performance.now()
    this.#drawSoon()
  }

  /** A horizontal line for an open contract: { price, label, rise } or undefined. */
  mark(mark) {
    this.#mark = mark
    this.#drawSoon()
  }

  get points() {
    return this.#points
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
    const color = (name) => style.getPropertyValue(`--${name}`).trim()
    this.#colors = Object.fromEntries(
      ['ink', 'muted', 'line', 'surface', 'chart', 'up', 'down'].map((n) => [n, color(n)]),
    )
    this.#colors.font = style.fontFamily
    this.#drawSoon()
  }

  #point(x) {
    this.#pointer = x
    this.#drawSoon()
  }

  #drawSoon() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined
      this.#draw()
    })
  }

  /** The last price moves smoothly to its new position. */
  #ease() {
    const target = this.#points.at(-1).price
    const progress = Math.min(1, (performance.now() - this.#easeStart) / EASE_MS)
    if (this.#easeFrom === undefined || progress >= 1) this.#shown = target
    else {
      this.#shown = this.#easeFrom + (target - this.#easeFrom) * (1 - (1 - progress) ** 3)
      this.#drawSoon()
    }
  }

  #draw() {
    const { width, height } = this.#size
    const context = this.#context
    context.clearRect(0, 0, width, height)
    if (width === 0 || this.#points.length < 2) return
    this.#ease()
    context.font = `12px ${this.#colors.font}`
    context.textBaseline = 'middle'
    const view = this.#view()
    this.#drawGrid(view)
    this.#drawLine(view)
    this.#drawMark(view)
    this.#drawTag(view, this.#shown, this.#points.at(-1).price, this.#colors.chart)
    if (this.#pointer !== undefined) this.#drawPointer(view)
  }

  #view() {
    const { width, height } = this.#size
    const prices = this.#points.map((point) => point.price)
    if (this.#mark !== undefined) prices.push(this.#mark.price)
    const low = Math.min(...prices)
    const high = Math.max(...prices)
    const room = (high - low || Math.abs(high) * 0.001 || 1) * 0.12
    const labelWidth = this.#context.measureText(high.toFixed(this.#digits)).width + 18
    const right = width - labelWidth
    const bottom = height - PAD.bottom
    const first = this.#points[0].time
    const span = this.#points.at(-1).time - first || 1
    const min = low - room
    const max = high + room
    return {
      min,
      max,
      right,
      bottom,
      first,
      span,
      x: (time) => PAD.left + ((time - first) / span) * (right - PAD.left - 6),
      y: (price) => bottom - ((price - min) / (max - min)) * (bottom - PAD.top),
    }
  }

  #drawGrid({ min, max, right, bottom, first, span, x, y }) {
    const context = this.#context
    const tags = [this.#shown, this.#mark?.price].filter((price) => price !== undefined).map(y)
    const step = niceStep((max - min) / Math.max(2, Math.floor((bottom - PAD.top) / 44)))
    context.strokeStyle = this.#colors.line
    context.fillStyle = this.#colors.muted
    context.lineWidth = 1
    context.textAlign = 'left'
    for (let price = Math.ceil(min / step) * step; price <= max; price += step) {
      const level = Math.round(y(price)) + 0.5
      this.#stroke([0, level], [right, level])
      if (tags.every((tag) => Math.abs(tag - level) > TAG))
        context.fillText(price.toFixed(this.#digits), right + 8, level)
    }
    const labels = Math.max(2, Math.min(5, Math.floor(right / 120)))
    for (let index = 0; index < labels; index++) {
      const time = first + (span * index) / (labels - 1)
      context.textAlign = index === 0 ? 'left' : index === labels - 1 ? 'right' : 'center'
      context.fillText(clock(time), x(time), bottom + 15)
    }
  }

  #drawLine({ x, y, bottom }) {
    const context = this.#context
    const last = this.#points.length - 1
    context.beginPath()
    this.#points.forEach((point, index) => context.lineTo(x(point.time), y(index === last ? this.#shown : point.price)))
    context.strokeStyle = this.#colors.chart
    context.lineWidth = 2
    context.lineJoin = 'round'
    context.stroke()
    context.lineTo(x(this.#points[last].time), bottom)
    context.lineTo(x(this.#points[0].time), bottom)
    const fill = context.createLinearGradient(0, PAD.top, 0, bottom)
    fill.addColorStop(0, this.#colors.chart)
    fill.addColorStop(1, 'transparent')
    context.globalAlpha = 0.14
    context.fillStyle = fill
    context.fill()
    context.globalAlpha = 1
    this.#dot(x(this.#points[last].time), y(this.#shown), this.#colors.chart)
  }

  #drawMark(view) {
    if (this.#mark === undefined) return
    const { price, label, rise } = this.#mark
    const context = this.#context
    const level = Math.round(view.y(price)) + 0.5
    const color = rise ? this.#colors.up : this.#colors.down
    context.setLineDash([5, 4])
    context.strokeStyle = color
    context.lineWidth = 1.5
    this.#stroke([0, level], [view.right, level])
    context.setLineDash([])
    context.textAlign = 'left'
    const above = level > PAD.top + 20
    this.#halo(`${label} ${price.toFixed(this.#digits)}`, 6, level + (above ? -11 : 12), color)
    if (Math.abs(view.y(price) - view.y(this.#shown)) > TAG) this.#drawTag(view, price, price, color)
  }

  #drawTag({ right, y }, at, price, color) {
    const context = this.#context
    const text = price.toFixed(this.#digits)
    const level = y(at)
    context.fillStyle = color
    context.beginPath()
    context.roundRect(right + 2, level - TAG / 2, context.measureText(text).width + 13, TAG, 5)
    context.fill()
    context.fillStyle = this.#colors.surface
    context.textAlign = 'left'
    context.fillText(text, right + 8, level + 0.5)
  }

  #drawPointer({ right, bottom, x, y }) {
    const context = this.#context
    const distance = (point) => Math.abs(x(point.time) - this.#pointer)
    const nearest = this.#points.reduce((best, point) => (distance(point) < distance(best) ? point : best))
    const at = Math.round(x(nearest.time)) + 0.5
    context.strokeStyle = this.#colors.muted
    context.lineWidth = 1
    this.#stroke([at, PAD.top], [at, bottom])
    this.#dot(at, y(nearest.price), this.#colors.ink)
    const text = `${nearest.price.toFixed(this.#digits)} at ${clock(nearest.time)}`
    const wide = context.measureText(text).width
    const left = Math.max(2, Math.min(right - wide - 4, at - wide / 2))
    context.textAlign = 'left'
    this.#halo(text, left, PAD.top - 4, this.#colors.ink)
  }

  #halo(text, x, y, color) {
    const context = this.#context
    context.strokeStyle = this.#colors.surface
    context.lineWidth = 4
    context.lineJoin = 'round'
    context.strokeText(text, x, y)
    context.fillStyle = color
    context.fillText(text, x, y)
  }

  #dot(x, y, color) {
    const context = this.#context
    context.beginPath()
    context.arc(x, y, 4, 0, Math.PI * 2)
    context.fillStyle = color
    context.fill()
    context.lineWidth = 2
    context.strokeStyle = this.#colors.surface
    context.stroke()
  }

  #stroke(from, to) {
    this.#context.beginPath()
    this.#context.moveTo(...from)
    this.#context.lineTo(...to)
    this.#context.stroke()
  }
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough))
  return [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) * power
}
