import { jitter, recovered, retryAfterMs, sharedDelayMs } from './backoff.ts'
import { onTick } from './clock.ts'
import { isOnline, onPage, type PageEvent } from './page.ts'
import type { Message, SocketStatus } from './socket-status.ts'

/** Whom a link calls. */
export interface LinkOwner {
  /** Opens a WebSocket. */
  readonly connect: () => WebSocket
  /** After a 4401: whether the user is logged in all the same. */
  readonly confirm: () => Promise<boolean>
  /** A new connection may be used. */
  readonly up: () => void
  readonly message: (message: Message) => void
  /** The connection has gone, or there will be none any more: what was sent on it gets no response. */
  readonly down: (status: SocketStatus) => void
  readonly status: () => void
}

/** How long a handshake may take; the server itself gives up sooner. */
const CONNECT_MS = 20_000
/** A connection is asked for a sign of life after so much silence, and given up after waiting twice so long. */
const SILENCE_MS = 10_000
const PATIENCE_MS = 4000
/** The same while the browser says that it has no network. */
const OFFLINE_SILENCE_MS = 1000
const OFFLINE_PATIENCE_MS = 2000
/** Longest silence after which a message is sent without asking for a sign of life first. */
const FRESH_MS = 3000

/** The least wait after closes that coming back at once would only repeat. */
const FLOORS_MS: Readonly<Record<number, number>> = { 1009: 5000, 1011: 5000, 4408: 2000, 4429: 10_000 }

/** A connection that comes back by itself, until it is closed or the server says that it must not. */
export class Link {
  status: SocketStatus = { state: 'waiting' }
  readonly #owner: LinkOwner
  readonly #leavePage: () => void
  readonly #stopClock: () => void
  #socket: WebSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #startedAt = 0
  #heardAt = 0
  /** When a sign of life was asked for that has not come; 0: none is awaited. */
  #askedAt = 0

  constructor(owner: LinkOwner) {
    this.#owner = owner
    this.#leavePage = onPage((event) => this.#onPage(event))
    this.#stopClock = onTick((hasJumped) =>
      hasJumped && this.status.state === 'open' ? this.#doubt() : this.#tick(),
    )
    // The owner has yet to keep what this returns.
    queueMicrotask(() => this.#connect())
  }

  /** True once a message may be sent; whether anybody listens is another matter: see {@link isFresh}. */
  get isUp(): boolean {
    return this.#socket?.readyState === 1
  }

  /** The connection has just shown that it works. */
  get isFresh(): boolean {
    const silentMs = Date.now() - this.#heardAt
    return silentMs >= 0 && silentMs <= FRESH_MS && this.#socket?.bufferedAmount === 0 && isOnline()
  }

  /** Sends a message now. Only when {@link isUp}. */
  send(message: Message): void {
    this.#socket?.send(JSON.stringify(message))
  }

  close(): void {
    if (this.status.state === 'ended') return
    this.#drop()
    this.#end({ state: 'ended', code: 1000, reason: '' })
  }

  #set(status: SocketStatus): void {
    this.status = status
    this.#owner.status()
  }

  #end(status: SocketStatus): void {
    clearTimeout(this.#timer)
    this.#leavePage()
    this.#stopClock()
    this.#set(status)
    this.#owner.down(status)
  }

  #connect(): void {
    clearTimeout(this.#timer)
    if (this.#socket || this.status.state === 'ended') return
    if (!isOnline()) return this.#wait({ state: 'waiting' }, 30_000)
    const socket = (this.#socket = this.#owner.connect())
    let isHeard = false
    this.#startedAt = Date.now()
    this.#askedAt = 0
    this.#set({ state: 'connecting' })
    // From here on only what happens to this connection counts.
    socket.onopen = () => {
      if (socket !== this.#socket) return
      this.#heardAt = Date.now()
      this.#ask()
      this.#owner.up()
    }
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return
      if (!isHeard) {
        isHeard = true
        this.#failures = 0
        recovered()
      }
      this.#heard(data)
    }
    socket.onclose = ({ code, reason }) => {
      if (socket === this.#socket) void this.#closed(code, reason)
    }
  }

  #heard(data: unknown): void {
    this.#heardAt = Date.now()
    this.#askedAt = 0
    if (this.status.state !== 'open') this.#set({ state: 'open' })
    const message = parsed(data)
    if (message) this.#owner.message(message)
  }

  async #closed(code: number, full: string): Promise<void> {
    this.#drop()
    const [reason = ''] = full.split(';')
    const waiting: SocketStatus = { state: 'waiting', code, reason }
    const ended: SocketStatus = { state: 'ended', code, reason }
    if (code === 4403 || code === 4404) return this.#end(ended)
    this.#set(waiting)
    this.#owner.down(waiting)
    if (code === 4401) {
      const isLoggedIn = await this.#owner.confirm()
      if (this.status !== waiting) return
      if (!isLoggedIn) return this.#end(ended)
    }
    const floorMs = Math.max(FLOORS_MS[code] ?? 0, retryAfterMs(full))
    // A floor is about this connection alone.
    this.#wait(waiting, floorMs > 0 ? floorMs + jitter(this.#failures) : sharedDelayMs(this.#failures))
    this.#failures++
  }

  #wait(status: SocketStatus, ms: number): void {
    clearTimeout(this.#timer)
    this.#set({ ...status, retryAt: Date.now() + ms })
    this.#timer = setTimeout(() => this.#connect(), ms)
  }

  /** Forgets the connection. Its own close may take a browser minutes to notice. */
  #drop(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.close()
  }

  #ask(): void {
    this.#askedAt = Date.now()
    if (this.isUp) this.send({ ping: 1 })
  }

  /** Says that the connection may be dead, and asks it. */
  #doubt(): void {
    if (!this.isUp) return
    this.#set({ state: 'stale' })
    this.#ask()
  }

  #onPage(event: PageEvent): void {
    if (event === 'pagehide') this.#interrupt()
    else if (event === 'pageshow' || event === 'online') {
      this.#doubt()
      // Only the network was the reason: what a server asked for is waited for.
      const { state, code = 1006 } = this.status
      if (state === 'waiting' && code === 1006) this.#wait({ state: 'waiting' }, jitter(0))
    } else if (event === 'offline') this.#doubt()
  }

  #tick(): void {
    if (!this.#socket) return
    const now = Date.now()
    if (!this.isUp) {
      if (now - this.#startedAt > CONNECT_MS) void this.#closed(1006, '')
      return
    }
    const online = isOnline()
    const patienceMs = online ? PATIENCE_MS : OFFLINE_PATIENCE_MS
    if (this.#askedAt === 0) {
      if (now - this.#heardAt >= (online ? SILENCE_MS : OFFLINE_SILENCE_MS)) this.#ask()
    } else if (now - this.#askedAt >= patienceMs) {
      if (this.status.state === 'stale') void this.#closed(1006, '')
      else this.#doubt()
    }
  }

  /** The page is left: nothing may keep it out of the back/forward cache, and no response will be read. */
  #interrupt(): void {
    clearTimeout(this.#timer)
    this.#drop()
    this.#set({ state: 'waiting' })
    this.#owner.down(this.status)
  }
}

/** A message that is none of the trading service's family is only a sign of life. */
function parsed(data: unknown): Message | undefined {
  try {
    return JSON.parse(String(data)) as Message
  } catch {
    return undefined
  }
}
