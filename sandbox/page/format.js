/** Numbers and times as texts, in the same form everywhere on the page. */

const MINUS = '\u2212'
/** By their options. Making one takes a millisecond, and a chart shows many numbers. */
const formatters = new Map()

function formatter(minimumFractionDigits, maximumFractionDigits) {
  const key = `${minimumFractionDigits}-${maximumFractionDigits}`
  const known = formatters.get(key)
  if (known) return known
  const made = new Intl.NumberFormat('en', { minimumFractionDigits, maximumFractionDigits })
  formatters.set(key, made)
  return made
}

/** The number in a JSON value that may be a number or a string; undefined if there is none. */
export function toNumber(value) {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

/** 1,234.50 with this number of decimals */
export function decimal(value, digits) {
  return `${value < 0 ? MINUS : ''}${formatter(digits, digits).format(Math.abs(value))}`
}

/** 1,234.50 USD; a dash if the value is not a number */
export function money(value, currency = '') {
  const number = toNumber(value)
  if (number === undefined) return '–'
  const text = formatter(2, 8).format(Math.abs(number))
  return `${number < 0 ? MINUS : ''}${text}${currency ? ` ${currency}` : ''}`
}

/** +8.18 USD */
export function signed(value, currency = '') {
  const number = toNumber(value)
  if (number === undefined) return '–'
  return `${number > 0 ? '+' : ''}${money(number, currency)}`
}

/** The direction of a figure: up, down or flat. */
export const toneOf = (value) => (value > 0 ? 'up' : value < 0 ? 'down' : 'flat')

/** A change as the page shows it, whose direction is that of the rounded figure: { text: '+0.12', tone: 'up' } */
export function change(value, digits) {
  const rounded = Number(value.toFixed(digits))
  return { text: `${rounded > 0 ? '+' : ''}${decimal(rounded === 0 ? 0 : rounded, digits)}`, tone: toneOf(rounded) }
}

export const clock = (milliseconds) => new Date(milliseconds).toLocaleTimeString('en-GB')

/** at 09:05, or on 3 Mar 2026, 09:05 when that is another day */
export function moment(milliseconds) {
  const time = new Date(milliseconds)
  if (time.toDateString() === new Date().toDateString()) return `at ${clock(milliseconds).slice(0, 5)}`
  return `on ${time.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })}`
}

/** 7 h 59 min, 29:58, 0:07 */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000))
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** random_index -> Random index; labels that are meant for people stay unchanged. */
export const readable = (label) =>
  /^[a-z_]+$/.test(label) ? label[0].toUpperCase() + label.slice(1).replaceAll('_', ' ') : label
