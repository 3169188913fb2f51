/** Small helpers for the DOM. Data only ever becomes text nodes or plain attributes. */

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

/** Marks a button as not usable. Unlike a disabled one, it keeps the focus, and can say why it does nothing. */
export function setUsable(button, isUsable) {
  button.setAttribute('aria-disabled', String(!isUsable))
}
