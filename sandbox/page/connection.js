/** The state of a connection in words, in the header of its card, with the seconds until the next attempt. */
import { $, setText } from './dom.js'

const CLOSES = {
  1000: 'The trading service closed the connection',
  1009: 'A message was too large',
  1011: 'The server has a fault',
  1012: 'The server is restarting',
  1013: 'The trading service cannot be reached',
  4401: 'The session has ended',
  4403: 'Access was refused',
  4404: 'This account does not exist',
  4408: 'This page read too slowly',
  4429: 'Too many connections, close other tabs',
}

/** Whether the browser knows that it has no network. */
export const isOffline = () => !navigator.onLine

/** @param status the status of a socket; undefined if there is no socket */
export function inWords({ state, code } = {}) {
  if (state === undefined) return 'Not connected'
  if (state === 'open') return 'Connected'
  if (state === 'ended') return code >= 4400 ? CLOSES[code] : 'Not connected'
  if (isOffline()) return 'Your device is offline'
  if (state === 'connecting') return 'Connecting'
  if (state === 'stale') return 'No response, checking the connection'
  return CLOSES[code] ?? 'Connection lost'
}

/** Empty unless the next attempt is known. Without a network, it starts when that is back. */
function nextAttempt({ state, retryAt } = {}) {
  if (state !== 'waiting' || retryAt === undefined || isOffline()) return ''
  const seconds = Math.ceil((retryAt - Date.now()) / 1000)
  return seconds > 0 ? `, next attempt in ${seconds} s` : ', next attempt now'
}

/** The line in the header of a card, `market` or `trade`, that shows one socket after another. */
export class ConnectionLine {
  #card
  #socket

  constructor(card) {
    this.#card = card
    for (const event of ['online', 'offline']) addEventListener(event, () => this.#draw())
    setInterval(() => this.#draw(), 1000)
  }

  /** @param socket a socket of the client; undefined if there is none */
  follow(socket) {
    this.#socket = socket
    socket?.onStatus(() => socket === this.#socket && this.#draw())
    this.#draw()
  }

  #draw() {
    const status = this.#socket?.status()
    const line = $(`#${this.#card}-state`)
    setText(line.querySelector('[role=status]'), inWords(status))
    // Outside of the live region, which would announce every second.
    setText(line.querySelector('.next'), nextAttempt(status))
    const state = status?.state ?? 'idle'
    line.dataset.state = state
    line.closest('.card').dataset.connection = state
  }
}
