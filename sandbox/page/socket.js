/**
 * A WebSocket to this server that matches responses to requests by req_id and reconnects by itself. A refusal also arrives
 * as open + close, so the backoff is reset only by a message that comes a while after the open. Requests of a lost
 * connection fail and are never sent again automatically.
 */
import { record } from './inspect.js'

const BASE_MS = 1000
const CAP_MS = 60_000
const STABLE_MS = 10_000
const PING_MS = 30_000
const SILENT_MS = 70_000
const ANSWER_MS = 15_000

const DEFAULT = { text: 'Connection lost' }
const CLOSES = {
  1000: { text: 'The trading service closed the connection' },
  1009: { text: 'A message was too large' },
  1011: { text: 'The server has a fault' },
  1012: { text: 'The server is restarting' },
  1013: { text: 'The trading service cannot be reached' },
  4401: { text: 'The session has ended', session: true },
  4403: { text: 'Access was refused', final: true },
  4404: { text: 'This account does not exist', final: true },
  4408: { text: 'This page read too slowly', floor: 2000 },
  4429: { text: 'Too many connections, close other tabs', floor: 10_000 },
}

export class ConnectionLost extends Error {}

export class Channel {
  #path
  #on
  #socket
  #pending = new Map()
  #nextId = 1
  #attempts = 0
  #wanted = false
  #retryTimer
  #pingTimer
  #lastFrame = 0

  /** A hidden or offline page does not reconnect. This does it when the page is visible and online again. */
  #wake = () => {
    const due = this.#wanted && this.#socket === undefined && this.#retryTimer === undefined
    if (due && !document.hidden && navigator.onLine && this.#attempts > 0) this.#connect()
  }

  /** on: open(channel), state({ state, text }), sessionEnded() -> Promise<boolean>: still logged in? */
  constructor(path, on) {
    this.#path = path
    this.#on = on
  }

  start() {
    if (this.#wanted) return
    this.#wanted = true
    addEventListener('online', this.#wake)
    document.addEventListener('visibilitychange', this.#wake)
    this.#connect()
  }

  stop(text = 'Not connected') {
    this.#wanted = false
    removeEventListener('online', this.#wake)
    document.removeEventListener('visibilitychange', this.#wake)
    clearTimeout(this.#retryTimer)
    this.#retryTimer = undefined
    this.#drop(1000)
    this.#state('idle', text)
  }

  retryNow() {
    if (!this.#wanted || this.#socket !== undefined) return
    clearTimeout(this.#retryTimer)
    this.#retryTimer = undefined
    this.#connect()
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN
  }

  /** Resolves with the first response. onMessage gets it and all later messages with its req_id, until it returns false. */
  request(payload, { onMessage, timeout = ANSWER_MS } = {}) {
    if (!this.isOpen) return Promise.reject(new ConnectionLost('not connected'))
    const req_id = this.#nextId++
    return new Promise((resolve, reject) => {
      const timer = timeout > 0 ? setTimeout(() => reject(new Error('No response in time.')), timeout) : undefined
      this.#pending.set(req_id, { resolve, reject, onMessage, timer })
      this.#socket.send(JSON.stringify({ ...payload, req_id }))
      this.#count('sent')
    })
  }

  /** Sends a request whose response does not matter. */
  tell(payload) {
    this.request(payload).catch(() => {})
  }

  #connect() {
    const url = new URL(this.#path, location.href)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(url)
    const update = record({ method: 'WS', path: this.#path, status: 'connecting', detail: '' })
    Object.assign(socket, { sent: 0, received: 0, update })
    this.#socket = socket
    this.#state('connecting', 'Connecting')
    const mine = (handler) => (event) => this.#socket === socket && handler(event)
    socket.addEventListener(
      'open',
      mine(() => this.#opened()),
    )
    socket.addEventListener(
      'message',
      mine((event) => this.#received(event.data)),
    )
    socket.addEventListener(
      'close',
      mine((event) => this.#closed(event.code, event.reason)),
    )
  }

  #opened() {
    const socket = this.#socket
    socket.openedAt = Date.now()
    this.#lastFrame = Date.now()
    socket.update({ status: 'open', tone: 'good' })
    this.#state('open', 'Connected')
    this.#pingTimer = setInterval(() => this.#beat(), PING_MS)
    this.#on.open(this)
  }

  /** Upstream drops idle connections, and a dead network sends no close. */
  #beat() {
    if (Date.now() - this.#lastFrame > SILENT_MS) this.#closed(1006, 'silent')
    else this.tell({ ping: 1 })
  }

  #received(data) {
    this.#lastFrame = Date.now()
    this.#count('received')
    if (Date.now() - this.#socket.openedAt > STABLE_MS) this.#attempts = 0
    const message = parse(data)
    const waiting = this.#pending.get(message?.req_id)
    if (waiting === undefined) return
    clearTimeout(waiting.timer)
    waiting.resolve(message)
    const more = waiting.onMessage?.(message) ?? waiting.onMessage !== undefined
    if (!more) this.#pending.delete(message.req_id)
  }

  #closed(code, reason) {
    this.#drop(code, reason)
    const rule = CLOSES[code] ?? DEFAULT
    if (rule.final) this.stop(rule.text)
    else if (rule.session && this.#on.sessionEnded) this.#askSession(rule.text)
    else this.#retryLater(rule.text, rule.floor)
  }

  /** Another login may have replaced the session. Then this browser still has one, and reconnects slowly. */
  async #askSession(text) {
    this.#state('waiting', text)
    const alive = await this.#on.sessionEnded()
    if (!this.#wanted || this.#socket !== undefined) return
    if (alive) this.#retryLater(text, 3000)
    else this.stop(text)
  }

  #retryLater(text, floor = 0) {
    const ceiling = Math.min(CAP_MS, BASE_MS * 2 ** this.#attempts)
    this.#attempts = Math.min(this.#attempts + 1, 10)
    const delay = Math.max(floor, ceiling / 2) + (Math.random() * Math.max(floor, ceiling)) / 2
    const seconds = Math.max(1, Math.round(delay / 1000))
    this.#state('waiting', `${text}, trying again in ${seconds} s`)
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = undefined
      if (document.hidden || !navigator.onLine) this.#state('waiting', `${text}, waiting for the network`)
      else this.#connect()
    }, delay)
  }

  #drop(code, reason = '') {
    const socket = this.#socket
    this.#socket = undefined
    clearInterval(this.#pingTimer)
    if (socket === undefined) return
    if (socket.readyState <= WebSocket.OPEN) socket.close()
    socket.update({
      status: `closed ${code}`,
      tone: code === 1000 ? 'plain' : 'bad',
      detail: [reason, frames(socket)].filter(Boolean).join(' · '),
    })
    const lost = [...this.#pending.values()]
    this.#pending.clear()
    for (const { reject, timer } of lost) {
      clearTimeout(timer)
      reject(new ConnectionLost('connection lost'))
    }
  }

  #count(direction) {
    const socket = this.#socket
    socket[direction]++
    socket.update({ detail: frames(socket) })
  }

  #state(state, text) {
    this.#on.state({ state, text })
  }
}

const frames = (socket) => `frames ${socket.received} in, ${socket.sent} out`

function parse(data) {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
