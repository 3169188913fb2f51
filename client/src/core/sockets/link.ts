import { jitter, recovered, retryAfterMs, sharedDelayMs } from '../base/backoff.ts'
import { elapsedMs, onTick } from '../base/clock.ts'
import { report } from '../base/errors.ts'
import { isOnline, onPage, type PageEvent } from '../base/page.ts'
import { parsed, type Message, type SocketStatus } from './socket-status.ts'
import {
  CONNECT_MS,
  SILENCE_MS,
  KEEP_ALIVE_MS,
  PATIENCE_MS,
  OFFLINE_SILENCE_MS,
  OFFLINE_PATIENCE_MS,
  QUEUED_MS,
  FRESH_MS,
  LATENCIES,
  STABLE_MS,
} from './socket-times.ts'

/** What a link needs, and whom it notifies. */
export interface LinkOwner {
  /** Opens a WebSocket. */
  readonly connect: () => WebSocket
  /** Returns a new `req_id`, for a ping. */
  readonly nextId: () => number
  /** Called after the close code 4401. Resolves with true if the user is logged in nevertheless. */
  readonly confirm: () => Promise<boolean>
  /** Called when a new connection has opened. */
  readonly up: () => void
  readonly message: (message: Message) => void
  /** Called when the connection is lost. What was sent on it gets no reply. With the state `ended`, no other will follow. */
  readonly down: (status: SocketStatus) => void
  /** Called after every change of {@link Link.status}. */
  readonly status: () => void
}

/** The minimum delay after close codes that an immediate reconnect would only provoke again, where the server asks for none. */
const FLOORS_MS: Readonly<Record<number, number>> = { 1009: 5000, 1011: 5000, 4408: 2000, 4429: 10_000 }

/** A connection that reconnects by itself until it is closed or the server forbids it. */
export class Link {
  status: SocketStatus = { state: 'waiting' }
  readonly #owner: LinkOwner
  readonly #leavePage: () => void
  readonly #stopClock: () => void
  #socket: WebSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #startedAt = 0
  #receivedAt = 0
  #sentAt = 0
  /** When the first message of the connection arrived; 0 before it. */
  #provenAt = 0
  /** When the ping was sent whose reply is awaited; 0 if none is. */
  #pingedAt = 0
  /** The `req_id` of the latest ping, and when it was sent. */
  #pingId = 0
  #pingSentAt = 0
  /** The times that the replies to the last pings took, in milliseconds, and the middle one of these. */
  #latencies: readonly number[] = []
  #latencyMs: number | undefined

  /** @param before the status of a closed link to the same path, whose delay this one keeps */
  constructor(owner: LinkOwner, before: SocketStatus = this.status) {
    this.#owner = owner
    this.status = before
    this.#leavePage = onPage((event) => this.#onPage(event))
    this.#stopClock = onTick((hasJumped) =>
      hasJumped && this.status.state === 'open' ? this.#suspect() : this.#tick(),
    )
    // The owner has not stored the link yet, but its callbacks use it.
    const waitMs = Number(before.retryAt) - Date.now()
    if (waitMs > 0) this.#timer = setTimeout(() => this.#connect(), waitMs)
    else queueMicrotask(() => this.#connect())
  }

  /** True while a message can be sent. It may still get lost on a dead connection: see {@link isFresh}. */
  get isUp(): boolean {
    return this.#socket?.readyState === 1
  }

  /** True if a message has arrived on the connection, or on the one before if there is none. */
  get isProven(): boolean {
    return this.#provenAt > 0
  }

  /** True if the connection has just shown that it works. */
  get isFresh(): boolean {
    const silentMs = Date.now() - this.#receivedAt
    return silentMs >= 0 && silentMs <= FRESH_MS && this.#socket?.bufferedAmount === 0 && isOnline()
  }

  /** Sends the text of a message now. Call it only while {@link isUp}. */
  send(text: string): void {
    this.#sentAt = Date.now()
    this.#socket?.send(text)
  }

  close(): void {
    if (this.status.state === 'ended') return
    this.#drop()
    this.#end({ state: 'ended', code: 1000, reason: '' })
  }

  #set(next: SocketStatus): SocketStatus {
    const latencyMs = this.#latencyMs
    const status = { ...next, ...(latencyMs !== undefined && { latencyMs }) }
    this.status = status
    this.#owner.status()
    return status
  }

  #end(status: SocketStatus): void {
    clearTimeout(this.#timer)
    this.#leavePage()
    this.#stopClock()
    this.#owner.down(this.#set(status))
  }

  #connect(): void {
    clearTimeout(this.#timer)
    if (this.#socket || this.status.state === 'ended') return
    if (!isOnline()) return this.#wait({ state: 'waiting' }, 30_000)
    this.#pingedAt = this.#provenAt = 0
    let socket: WebSocket
    try {
      socket = this.#socket = this.#owner.connect()
    } catch (error) {
      // A browser may refuse the address.
      report(error)
      return void this.#closed(1006, '')
    }
    this.#startedAt = Date.now()
    this.#set({ state: 'connecting' })
    // Events of an earlier connection are ignored.
    socket.onopen = () => {
      if (socket !== this.#socket) return
      this.#receivedAt = Date.now()
      this.#ping()
      this.#owner.up()
    }
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return
      if (this.#provenAt === 0) {
        this.#provenAt = Date.now()
        recovered()
      }
      this.#receive(data)
    }
    socket.onclose = ({ code, reason }) => {
      if (socket === this.#socket) void this.#closed(code, reason)
    }
  }

  #receive(data: unknown): void {
    const message = parsed(data)
    if (message?.['req_id'] === this.#pingId) this.#measure()
    const isLive =
      this.status.state !== 'stale' || message?.['req_id'] === this.#pingId || elapsedMs(this.#pingedAt) > QUEUED_MS
    if (isLive) {
      this.#receivedAt = Date.now()
      this.#pingedAt = 0
      const { state, latencyMs } = this.status
      if (state !== 'open' || latencyMs !== this.#latencyMs) this.#set({ state: 'open' })
    }
    if (message) this.#owner.message(message)
  }

  /** Notes how long the reply to the latest ping took. A machine that slept meanwhile has not measured anything. */
  #measure(): void {
    const ms = Date.now() - this.#pingSentAt
    if (ms < 0 || ms > PATIENCE_MS) return
    this.#latencies = [...this.#latencies, ms].slice(-LATENCIES)
    this.#latencyMs = this.#latencies.toSorted((a, b) => a - b)[this.#latencies.length >> 1]
  }

  async #closed(code: number, full: string): Promise<void> {
    this.#drop()
    const [reason = ''] = full.split(';')
    const ended: SocketStatus = { state: 'ended', code, reason }
    if (code === 4403 || code === 4404) return this.#end(ended)
    const waiting = this.#set({ state: 'waiting', code, reason })
    this.#owner.down(waiting)
    const isOver = code === 4401 && !(await this.#owner.confirm())
    // Meanwhile a listener may have closed the link, or the user may have returned to the page.
    if (this.status !== waiting) return
    if (isOver) return this.#end(ended)
    if (this.#provenAt > 0 && elapsedMs(this.#provenAt) > STABLE_MS) this.#failures = 0
    const floorMs = retryAfterMs(full) || (FLOORS_MS[code] ?? 0)
    // The reason for a minimum delay concerns this connection alone, so it does not move the shared delay.
    this.#wait(waiting, floorMs > 0 ? floorMs + jitter(this.#failures) : sharedDelayMs(this.#failures))
    this.#failures++
  }

  #wait(status: SocketStatus, ms: number): void {
    clearTimeout(this.#timer)
    this.#set({ ...status, retryAt: Date.now() + ms })
    this.#timer = setTimeout(() => this.#connect(), ms)
  }

  /** Drops the connection without waiting for its close event, which a browser may fire minutes later. */
  #drop(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.close()
  }

  #ping(): void {
    this.#pingedAt = this.#pingSentAt = Date.now()
    this.#pingId = this.#owner.nextId()
    if (this.isUp) this.send(JSON.stringify({ ping: 1, req_id: this.#pingId }))
  }

  /** Marks the connection as possibly dead and sends a ping. */
  #suspect(): void {
    if (!this.isUp) return
    this.#set({ state: 'stale' })
    this.#ping()
  }

  #onPage(event: PageEvent): void {
    if (event === 'pagehide') this.#interrupt()
    else if (event === 'pageshow' || event === 'online') {
      this.#suspect()
      const { state, code = 1006, retryAt } = this.status
      if (state !== 'waiting') return
      // Reconnects soon if the network was the reason. A delay that the server asked for is kept.
      if (code === 1006) this.#wait({ state: 'waiting' }, jitter(0))
      else if (retryAt !== undefined) this.#wait(this.status, Math.max(retryAt - Date.now(), 0))
    } else if (event === 'offline') this.#suspect()
  }

  #tick(): void {
    if (!this.#socket) {
      // The timer of a machine that slept is late.
      if (Date.now() >= Number(this.status.retryAt)) this.#connect()
      return
    }
    if (!this.isUp) {
      if (elapsedMs(this.#startedAt) > CONNECT_MS) void this.#closed(1006, '')
      return
    }
    const online = isOnline()
    const patienceMs = online ? PATIENCE_MS : OFFLINE_PATIENCE_MS
    if (this.#pingedAt === 0) {
      const isSilent = elapsedMs(this.#receivedAt) >= (online ? SILENCE_MS : OFFLINE_SILENCE_MS)
      if (isSilent || elapsedMs(this.#sentAt) >= KEEP_ALIVE_MS) this.#ping()
    } else if (elapsedMs(this.#pingedAt) >= patienceMs) {
      if (this.status.state === 'stale') void this.#closed(1006, '')
      else this.#suspect()
    }
  }

  /** Drops the connection of a page that the user leaves, since an open one would keep it out of the back/forward cache. */
  #interrupt(): void {
    clearTimeout(this.#timer)
    if (!this.#socket) return
    this.#drop()
    this.#set({ state: 'waiting' })
    this.#owner.down(this.status)
  }
}
