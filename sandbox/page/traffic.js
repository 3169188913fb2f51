/** What this page sends and receives, for the Inspect card. The page's client uses this fetch and this WebSocket. */

const LIMIT = 200

class Traffic extends EventTarget {
  /** Newest first. */
  entries = []
  /** The last body of GET /auth/session, or message of /ws/session; undefined after a logout. */
  session
  #nextId = 1

  /** Adds a line to the log; the returned function updates it. */
  add(entry) {
    const line = { id: this.#nextId++, at: Date.now(), ...entry }
    this.entries.unshift(line)
    this.entries.length = Math.min(this.entries.length, LIMIT)
    this.#changed()
    return (changes) => {
      Object.assign(line, changes)
      this.#changed()
    }
  }

  takeSession(body) {
    this.session = body
    this.#changed()
  }

  #changed() {
    this.dispatchEvent(new Event('change'))
  }
}

export const traffic = new Traffic()

export async function recordedFetch(url, init) {
  const started = performance.now()
  const took = () => `${Math.round(performance.now() - started)} ms`
  const { pathname: path } = new URL(url, location.href)
  const update = traffic.add({ method: init.method ?? 'GET', path, status: 'pending' })
  try {
    const response = await fetch(url, init)
    const requestId = response.headers.get('x-request-id')
    const detail = [took(), requestId].filter(Boolean).join(' · ')
    update({ status: response.status, tone: response.ok ? 'good' : 'bad', detail })
    if (path === '/auth/session' && response.status === 200) {
      response
        .clone()
        .json()
        .then((body) => traffic.takeSession(body))
        .catch(() => {}) // The client handles a body that is cut off.
    }
    // After a 409, the session has ended, but not those elsewhere.
    if (path === '/auth/logout' && (response.ok || response.status === 409)) traffic.takeSession(undefined)
    return response
  } catch (error) {
    update({ status: 'no response', tone: 'bad', detail: took() })
    throw error
  }
}

export class RecordedSocket extends WebSocket {
  #sent = 0
  #received = 0
  #update

  constructor(url) {
    super(url)
    const { pathname: path } = new URL(url)
    this.#update = traffic.add({ method: 'WS', path, status: 'connecting', detail: '' })
    this.addEventListener('open', () => this.#update({ status: 'open', tone: 'good' }))
    this.addEventListener('message', ({ data }) => {
      this.#received++
      this.#update({ detail: this.#frames() })
      if (path === '/ws/session') takeSessionEvent(data)
    })
    this.addEventListener('close', ({ code, reason }) => {
      const detail = [reason, this.#frames()].filter(Boolean).join(' · ')
      // Code 1005: the page closed the socket itself.
      this.#update({ status: `closed ${code}`, tone: code === 1000 || code === 1005 ? 'plain' : 'bad', detail })
    })
  }

  send(data) {
    super.send(data)
    this.#sent++
    this.#update({ detail: this.#frames() })
  }

  close(code, reason) {
    super.close(code, reason)
    // On a dead network the browser may fire the close event minutes later.
    if (this.readyState === WebSocket.CLOSING) this.#update({ status: 'closing', tone: 'plain' })
  }

  #frames() {
    return `frames ${this.#received} in, ${this.#sent} out`
  }
}

function takeSessionEvent(data) {
  const message = JSON.parse(data)
  if (message.event === 'session' || message.event === 'ended') traffic.takeSession(message)
}
