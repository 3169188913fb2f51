import { jitter, recovered, retryAfterMs, sharedDelayMs } from '../base/backoff.ts'
import { elapsedMs, onTick } from '../base/clock.ts'
import { report } from '../base/errors.ts'
import { parseJson } from '../base/json.ts'
import { isOnline, onPage, type PageEvent } from '../base/page.ts'
import { PATIENCE_MS } from '../base/times.ts'
import type { Core } from '../core.ts'
import type { Message, SocketStatus } from './socket-status.ts'

/** Whom a link notifies. */
interface LinkOwner {
  /** Returns a new `req_id`, for a ping. */
  readonly nextId: () => number
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

/** When the waiting of a status is over, by a clock that nobody sets. It stands still while some machines sleep. */
const dues = new WeakMap<SocketStatus, number>()

/** How long a status still waits: 0 once that is over, and NaN if nothing says how long. */
function leftMs(status: SocketStatus): number {
  const byClock = (status.retryAt as number) - Date.now()
  return Math.max(Math.min(byClock, (dues.get(status) as number) - performance.now()), 0)
}

/** The status of what the page has closed. */
export const CLOSED: SocketStatus = { state: 'ended', code: 1000, reason: '' }

/**
 * A connection that reconnects by itself until it is closed or the server forbids it. Its phases are the states of its status, and
 * in each of them something owns the next step:
 * - `waiting`: the timer until `retryAt`, and the clock where that is late; without a `retryAt` the question whether the session
 *   has ended or why no connection opens, or the return of a page that was left.
 * - `connecting`: the events of the connection, and the clock, which gives up.
 * - `open`: the clock, which pings a silent connection.
 * - `stale`: a message, which shows that it works, and the clock, which drops it.
 * - `ended`: nothing.
 */
export class Link {
  status: SocketStatus = { state: 'waiting' }
  readonly #core: Core
  readonly #path: string
  readonly #owner: LinkOwner
  readonly #leavePage: () => void
  readonly #stopClock: () => void
  #socket: WebSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  /** Why no connection opens, as far as the server has told; empty once one does. */
  #why = ''
  /** When a message last arrived or, without one, when the connection opened, or began to. */
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
  constructor(core: Core, path: string, owner: LinkOwner, before: SocketStatus = this.status) {
    this.#core = core
    this.#path = path
    this.#owner = owner
    this.status = before
    this.#leavePage = onPage((event) => this.#onPage(event))
    this.#stopClock = onTick((hasJumped) =>
      hasJumped && this.status.state === 'open' ? this.#suspect() : this.#tick(),
    )
    // The owner has not stored the link yet, but its callbacks use it.
    const waitMs = leftMs(before)
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

  /** True if the connection has just shown that it works: any other is sent a ping before a command. */
  get isFresh(): boolean {
    const silentMs = Date.now() - this.#receivedAt
    return silentMs >= 0 && silentMs <= 3000 && this.#socket?.bufferedAmount === 0 && isOnline()
  }

  /** Sends the text of a message now. Call it only while {@link isUp}. */
  send(text: string): void {
    this.#sentAt = Date.now()
    this.#socket?.send(text)
  }

  close(): void {
    if (this.status.state !== 'ended') this.#enter(CLOSED)
  }

  /**
   * The only place where the phase changes, and with it the connection and the timer.
   * @param waitMs after how long to connect
   * @returns the status, which the owner may have changed again meanwhile
   */
  #enter({ retryAt: _before, ...next }: SocketStatus, waitMs?: number): SocketStatus {
    clearTimeout(this.#timer)
    const hasEnded = next.state === 'ended'
    const lost = hasEnded || next.state === 'waiting' ? this.#socket : undefined
    if (lost) {
      // Its close event is not waited for, which a browser may fire minutes later.
      this.#socket = undefined
      lost.close()
    }
    if (hasEnded) {
      this.#leavePage()
      this.#stopClock()
    }
    const latencyMs = this.#latencyMs
    const status: SocketStatus & { retryAt?: number } = { ...next, ...(latencyMs !== undefined && { latencyMs }) }
    if (waitMs !== undefined) {
      this.#timer = setTimeout(() => this.#connect(), waitMs)
      status.retryAt = Date.now() + waitMs
      dues.set(status, performance.now() + waitMs)
    }
    this.status = status
    this.#owner.status()
    if (lost || hasEnded) this.#owner.down(status)
    return status
  }

  #connect(): void {
    if (this.#socket || this.status.state === 'ended') return
    if (!isOnline()) return void this.#enter({ state: 'waiting' }, 30_000)
    this.#pingedAt = this.#provenAt = 0
    let socket: WebSocket
    try {
      socket = this.#socket = this.#core.server.socket(this.#path)
    } catch (error) {
      // A browser may refuse the address.
      report(error)
      return void this.#lost()
    }
    this.#receivedAt = Date.now()
    this.#enter({ state: 'connecting' })
    // Events of an earlier connection are ignored.
    socket.onopen = () => {
      if (socket !== this.#socket) return
      this.#receivedAt = Date.now()
      this.#why = ''
      this.#ping()
      this.#owner.up()
    }
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return
      this.#provenAt ||= Date.now()
      recovered()
      this.#receive(data)
    }
    socket.onclose = ({ code, reason }) => {
      if (socket === this.#socket) void this.#lost(code, reason)
    }
  }

  #receive(data: unknown): void {
    const message = parsed(data)
    if (message?.['req_id'] === this.#pingId) this.#measure()
    // Any other message that arrives soon after the ping may have waited in the browser while the machine slept.
    const isLive =
      this.status.state !== 'stale' || message?.['req_id'] === this.#pingId || elapsedMs(this.#pingedAt) > 1000
    if (isLive) {
      this.#receivedAt = Date.now()
      this.#pingedAt = 0
      const { state, latencyMs } = this.status
      if (state !== 'open' || latencyMs !== this.#latencyMs) this.#enter({ state: 'open' })
    }
    if (message) this.#owner.message(message)
  }

  /** Notes how long the reply to the latest ping took. A machine that slept meanwhile has not measured anything. */
  #measure(): void {
    const ms = Date.now() - this.#pingSentAt
    if (ms < 0 || ms > PATIENCE_MS) return
    this.#latencies = [...this.#latencies, ms].slice(-5)
    this.#latencyMs = this.#latencies.toSorted((a, b) => a - b)[this.#latencies.length >> 1]
  }

  /** Takes a connection as lost, and connects again unless the server forbids it. */
  async #lost(code = 1006, full = ''): Promise<void> {
    let [reason] = (full || this.#why).split(';') as [string]
    if (code === 4403 || code === 4404) return void this.#enter({ state: 'ended', code, reason })
    const waiting = this.#enter({ state: 'waiting', code, reason })
    const isOver = code === 4401 && !(await this.#core.store.confirm())
    // Meanwhile a listener may have closed the link, or the user may have returned to the page.
    if (this.status !== waiting) return
    if (isOver) return void this.#enter({ state: 'ended', code, reason })
    if (this.#provenAt > 0) {
      // The delays after losses grow until a connection has worked for this long.
      if (elapsedMs(this.#provenAt) > 10_000) this.#failures = 0
    } else if (code === 1006 && this.#failures % 8 === 2 && isOnline()) {
      // A browser shows no response to a handshake, so after every eighth attempt in a row the page asks without one. To its own
      // origin, such as that of a proxy, it sends no Origin but its Referer.
      try {
        const response = await this.#core.server.fetch(this.#path, {
          credentials: 'omit',
          signal: AbortSignal.timeout(10_000),
        })
        const { code } = (await response.json()) as { code?: unknown }
        reason = code === 'origin_rejected' ? code : ''
      } catch {
        // The network, or another server, is the reason.
      }
      if (this.status !== waiting) return
      this.#why = reason
    }
    const floorMs = retryAfterMs(full) || FLOORS_MS[code]
    // The reason for a minimum delay concerns this connection alone, so it does not move the shared delay.
    const waitMs = floorMs ? floorMs + jitter(this.#failures) : sharedDelayMs(this.#failures)
    this.#enter({ state: 'waiting', code, reason }, waitMs)
    this.#failures++
  }

  #ping(): void {
    this.#pingedAt = this.#pingSentAt = Date.now()
    this.#pingId = this.#owner.nextId()
    if (this.isUp) this.send(JSON.stringify({ ping: 1, req_id: this.#pingId }))
  }

  /** Marks the connection as possibly dead and sends a ping. */
  #suspect(): void {
    if (!this.isUp) return
    this.#enter({ state: 'stale' })
    this.#ping()
  }

  #onPage(event: PageEvent): void {
    if (event === 'pagehide') {
      clearTimeout(this.#timer)
      // Chromium would keep the connection open and answer the server's pings, so that it counts in every limit. When the page
      // is shown again, Chromium drops it, and with it the answers to what the page sends first.
      if (this.#socket) this.#enter({ state: 'waiting' })
    } else if (event === 'pageshow' || event === 'online') {
      this.#suspect()
      const { state, code = 1006 } = this.status
      const waitMs = leftMs(this.status)
      if (state !== 'waiting') return
      // Reconnects soon if the network was the reason. A delay that the server asked for is kept: its timer runs, unless
      // the page was left.
      if (code === 1006) this.#enter({ state }, jitter(0))
      else if (event === 'pageshow' && waitMs >= 0) this.#enter(this.status, waitMs)
    } else if (event === 'offline') this.#suspect()
  }

  #tick(): void {
    const online = isOnline()
    if (!this.#socket) {
      // The timer of a machine that slept is late.
      if (leftMs(this.status) === 0) this.#connect()
    } else if (!this.isUp) {
      // The server itself gives up sooner. A connection that it closes may end seconds later, and only then says why.
      if (elapsedMs(this.#receivedAt) > 20_000) void this.#lost()
    } else if (this.#pingedAt === 0) {
      const isSilent = elapsedMs(this.#receivedAt) >= (online ? 10_000 : 1000)
      // The trading service ends a connection on which nothing is sent.
      if (isSilent || elapsedMs(this.#sentAt) >= 30_000) this.#ping()
    } else if (elapsedMs(this.#pingedAt) >= (online ? PATIENCE_MS : 2000)) {
      if (this.status.state === 'stale') void this.#lost()
      else this.#suspect()
    }
  }
}

/** The message with this text. One that is not JSON only shows that the connection works. */
function parsed(data: unknown): Message | undefined {
  try {
    return parseJson(String(data)) as Message
  } catch {
    return undefined
  }
}
