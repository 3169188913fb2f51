/** Draws the price chart. A scene is what the chart shows; its view maps times and prices to positions. */
import { clock, decimal } from './format.js'

const TAG = 22
const PAD = { top: 18, bottom: 26, left: 2, right: 6 }

/** @param scene - { points, digits, style, lengthMs, width, height, context, colors, mark, shown, cursor } */
export function paint(scene) {
  const { context, colors } = scene
  const view = viewOf(scene)
  context.textBaseline = 'middle'
  drawGrid(scene, view)
  if (scene.style === 'candles') drawCandles(scene, view)
  else drawLine(scene, view)
  drawMark(scene, view)
  drawTag(scene, view, scene.shown, scene.points.at(-1).price, colors.chart)
  if (scene.cursor) drawCursor(scene, view)
}

/** The scales of a scene. */
export function viewOf({ points, digits, style, lengthMs, width, height, context, colors, mark }) {
  context.font = `12px ${colors.font}`
  let low = mark?.price ?? Infinity
  let high = mark?.price ?? -Infinity
  for (const point of points) {
    low = Math.min(low, point.low)
    high = Math.max(high, point.high)
  }
  const room = (high - low || Math.abs(high) * 0.001 || 1) * 0.12
  const [min, max] = [low - room, high + room]
  const right = width - context.measureText(decimal(max, digits)).width - 18
  const bottom = height - PAD.bottom
  const first = points[0].time
  // The last candle needs room for its whole length.
  const span = points.at(-1).time + (style === 'candles' ? lengthMs : 0) - first || 1
  const scale = (right - PAD.left - PAD.right) / span
  return {
    min,
    max,
    right,
    bottom,
    first,
    span,
    candleWidth: lengthMs * scale,
    x: (time) => PAD.left + (time - first) * scale,
    y: (price) => bottom - ((price - min) / (max - min)) * (bottom - PAD.top),
    timeAt: (x) => first + (x - PAD.left) / scale - (style === 'candles' ? lengthMs / 2 : 0),
  }
}

function drawGrid({ context, colors, digits, shown, mark }, { min, max, right, bottom, first, span, x, y }) {
  const tags = [shown, mark?.price].filter((price) => price !== undefined).map(y)
  const step = niceStep((max - min) / Math.max(2, Math.floor((bottom - PAD.top) / 44)))
  context.strokeStyle = colors.line
  context.fillStyle = colors.muted
  context.lineWidth = 1
  context.textAlign = 'left'
  for (let price = Math.ceil(min / step) * step; price <= max; price += step) {
    const level = Math.round(y(price)) + 0.5
    stroke(context, [0, level], [right, level])
    if (tags.every((tag) => Math.abs(tag - level) > TAG)) context.fillText(decimal(price, digits), right + 8, level)
  }
  const labels = Math.max(2, Math.min(5, Math.floor(right / 120)))
  for (let index = 0; index < labels; index++) {
    const time = first + (span * index) / (labels - 1)
    context.textAlign = index === 0 ? 'left' : index === labels - 1 ? 'right' : 'center'
    context.fillText(clock(time), x(time), bottom + 15)
  }
}

function drawLine({ context, colors, points, shown }, { x, y, bottom }) {
  const last = points.length - 1
  context.beginPath()
  points.forEach((point, index) => context.lineTo(x(point.time), y(index === last ? shown : point.price)))
  context.strokeStyle = colors.chart
  context.lineWidth = points.length > 500 ? 1.5 : 2
  context.lineJoin = 'round'
  context.stroke()
  context.lineTo(x(points[last].time), bottom)
  context.lineTo(x(points[0].time), bottom)
  const fill = context.createLinearGradient(0, PAD.top, 0, bottom)
  fill.addColorStop(0, colors.chart)
  fill.addColorStop(1, 'transparent')
  context.globalAlpha = 0.14
  context.fillStyle = fill
  context.fill()
  context.globalAlpha = 1
  dot(context, colors, x(points[last].time), y(shown), colors.chart)
}

function drawCandles({ context, colors, points }, { x, y, candleWidth }) {
  const body = Math.max(1, Math.round(candleWidth * 0.7))
  context.lineWidth = 1
  for (const { time, open, high, low, price } of points) {
    const center = Math.round(x(time) + candleWidth / 2) + 0.5
    const rises = price >= open
    context.strokeStyle = context.fillStyle = rises ? colors.up : colors.down
    stroke(context, [center, y(high)], [center, y(low)])
    const top = Math.round(y(Math.max(open, price)))
    const height = Math.max(1, Math.round(y(Math.min(open, price))) - top)
    const left = Math.round(center - body / 2)
    // Rising candles are hollow, so that nobody needs to tell the colours apart.
    if (rises && body > 3 && height > 2) {
      context.fillStyle = colors.surface
      context.fillRect(left, top, body, height)
      context.strokeRect(left + 0.5, top + 0.5, body - 1, height - 1)
    } else context.fillRect(left, top, body, height)
  }
}

function drawMark(scene, view) {
  const { context, colors, digits, mark, shown } = scene
  if (mark === undefined) return
  const level = Math.round(view.y(mark.price)) + 0.5
  const color = colors[mark.tone]
  context.setLineDash([5, 4])
  context.strokeStyle = color
  context.lineWidth = 1.5
  stroke(context, [0, level], [view.right, level])
  context.setLineDash([])
  context.textAlign = 'left'
  const above = level > PAD.top + 20
  halo(scene, `${mark.label} ${decimal(mark.price, digits)}`, 6, level + (above ? -11 : 12), color)
  if (Math.abs(view.y(mark.price) - view.y(shown)) > TAG) drawTag(scene, view, mark.price, mark.price, color)
}

function drawTag({ context, colors, digits }, { right, y }, at, price, color) {
  const text = decimal(price, digits)
  const level = y(at)
  context.fillStyle = color
  context.beginPath()
  context.roundRect(right + 2, level - TAG / 2, context.measureText(text).width + 13, TAG, 5)
  context.fill()
  context.fillStyle = colors.surface
  context.textAlign = 'left'
  context.fillText(text, right + 8, level + 0.5)
}

function drawCursor(scene, { bottom, candleWidth, x, y }) {
  const { context, colors, style, width, cursor } = scene
  const { point, texts } = cursor
  const at = Math.round(x(point.time) + (style === 'candles' ? candleWidth / 2 : 0)) + 0.5
  context.strokeStyle = colors.muted
  context.lineWidth = 1
  stroke(context, [at, PAD.top], [at, bottom])
  dot(context, colors, at, y(point.price), colors.ink)
  const widthOf = (text) => context.measureText(text).width
  const text = texts.find((each) => widthOf(each) < width - 8) ?? texts.at(-1)
  const left = Math.max(2, Math.min(width - widthOf(text) - 4, at - widthOf(text) / 2))
  context.textAlign = 'left'
  halo(scene, text, left, PAD.top - 9, colors.ink)
}

function halo({ context, colors }, text, x, y, color) {
  context.strokeStyle = colors.surface
  context.lineWidth = 4
  context.lineJoin = 'round'
  context.strokeText(text, x, y)
  context.fillStyle = color
  context.fillText(text, x, y)
}

function dot(context, colors, x, y, color) {
  context.beginPath()
  context.arc(x, y, 4, 0, Math.PI * 2)
  context.fillStyle = color
  context.fill()
  context.lineWidth = 2
  context.strokeStyle = colors.surface
  context.stroke()
}

function stroke(context, from, to) {
  context.beginPath()
  context.moveTo(...from)
  context.lineTo(...to)
  context.stroke()
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough))
  return [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) * power
}
