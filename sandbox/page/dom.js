/** Small helpers for the DOM and for texts. Data only ever becomes text nodes or plain attributes. */

export const $ = (selector) => document.querySelector(selector)

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value)
    else node.setAttribute(name, value === true ? '' : String(value))
  }
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== false))
  return node
}

/** Changes a text only if it differs, so that screen readers do not announce live regions twice. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}

/** Shows the parts of the page that are marked for this session state, and hides the others. */
export function showFor(state) {
  for (const node of document.querySelectorAll('[data-when]')) node.hidden = node.dataset.when !== state
}

export const toNumber = (value) => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

const MINUS = '\u2212'

export function money(value, currency = '') {
  const number = toNumber(value)
  if (number === undefined) return '–'
  const text = Math.abs(number).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 8 })
  return `${number < 0 ? MINUS : ''}${text}${currency ? ` ${currency}` : ''}`
}

export function signed(value, currency = '') {
  const number = toNumber(value)
  if (number === undefined) return '–'
  return `${number > 0 ? '+' : ''}${money(number, currency)}`
}

export const clock = (milliseconds) => new Date(milliseconds).toLocaleTimeString('en-GB')

/** 7 h 59 min, 29:58, 0:07 */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000))
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** random_index -> Random index; labels that are meant for people stay unchanged. */
export const readable = (label) =>
  /^[a-z_]+$/.test(label) ? label[0].toUpperCase() + label.slice(1).replaceAll('_', ' ') : label
