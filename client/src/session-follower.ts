import { jitter } from './backoff.ts'
import { notify } from './errors.ts'
import { onPage, type PageEvent } from './page.ts'
import { SESSION_PATH, type Server } from './server.ts'
import { sessionSocket, type SessionSocket } from './session-socket.ts'
import type { SessionStore } from './session-store.ts'
import type { EndReason, SessionBody, SessionEvent, SessionState } from './session-state.ts'
import { joinTabs, type Tabs } from './tabs.ts'

/** How often the server is asked before it is believed that a session has gone, and the time between. */
const ASKS = 4
const ASK_MS = 600
const ANSWER_MS = 10_000
/** Time between two questions, with a session socket and without. */
const SLOW_MS = 300_000
const POLL_MS = 60_000
const CLOCK_MS = 5000
/** A page that has just asked does not ask again because it is looked at. */
const FRESH_MS = 1000
/** `now` is a whole second, so a smaller difference between clocks means nothing. */
const SKEW_MS = 2000

/** Learns of the session from three sources: the server when asked, the session socket, and other tabs. */
export class SessionFollower implements SessionStore {
  #state: SessionState = { status: 'unknown' }
  readonly #server: Server
  readonly #socket: SessionSocket
  readonly #listeners = new Set<() => void>()
  #tabs: Tabs | undefined
  #leavePage: (() => void) | undefined
  /** Changes with everything that is learned or asked: the answer to an older question is dropped. */
  #turn = 0
  #asks = 0
  #askedAt = 0
  #failures = 0
  #skewMs = NaN
  #endedBy: EndReason | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(server: Server) {
    this.#server = server
    this.#socket = sessionSocket(server, (event) => this.#hear(event, true), this.check)
  }

  readonly get = (): SessionState => this.#state

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (!this.#leavePage) {
      this.#leavePage = onPage((event) => this.#onPage(event))
      this.#join()
    }
    return () => void this.#listeners.delete(listener)
  }

  /** Asks the server, so often before it is believed that nobody is logged in. `isHint`: other tabs know of it. */
  async #check(asks: number, isHint = false): Promise<void> {
    this.#asks = Math.max(this.#asks, asks)
    this.#askedAt = Date.now()
    const turn = ++this.#turn
    for (;;) {
      // No answer, or one that makes no sense: nobody can tell.
      const body = await this.#ask().catch(() => undefined)
      if (turn !== this.#turn) return
      if (!body) return this.#unavailable()
      this.#failures = 0
      const { status } = this.#state
      if (body.authenticated || --this.#asks <= 0) {
        const known = this.#learn(body)
        // A visitor who was never logged in is no news.
        const isNews = status !== this.#state.status && (known ?? status !== 'unknown')
        if (isNews && !isHint) this.#tell(known)
        return
      }
      await new Promise((resolve) => void setTimeout(resolve, ASK_MS))
      if (turn !== this.#turn) return
    }
  }

  readonly check = (): Promise<void> => this.#check(1)

  readonly confirm = async (): Promise<boolean> => {
    await this.#check(ASKS)
    return this.#state.status !== 'anonymous'
  }

  readonly end = (reason: EndReason): void => {
    this.#endedBy = reason
    this.#tell(this.#learn())
  }

  readonly close = (): void => {
    this.#leavePage?.()
    this.#leavePage = undefined
    this.#part()
  }

  async #ask(): Promise<SessionBody | undefined> {
    const response = await this.#server.fetch(SESSION_PATH, { signal: AbortSignal.timeout(ANSWER_MS) })
    return response.ok ? ((await response.json()) as SessionBody) : undefined
  }

  #learn(body?: SessionBody): SessionBody | undefined {
    const reason = this.#endedBy
    if (!body?.authenticated) {
      this.#set({ status: 'anonymous', ...(reason && { reason }) })
      return undefined
    }
    const { now, expires_at, idle_expires_at, scope, subject } = body
    const skewMs = now * 1000 - Date.now()
    if (!(Math.abs(skewMs - this.#skewMs) < SKEW_MS)) this.#skewMs = skewMs
    this.#endedBy = undefined
    this.#set({
      status: 'active',
      expiresAt: expires_at * 1000 - this.#skewMs,
      idleExpiresAt: idle_expires_at * 1000 - this.#skewMs,
      scope,
      ...(subject && { subject }),
    })
    return body
  }

  /** Tells the other tabs. */
  #tell(event: SessionBody | SessionEvent = { event: 'ended', reason: this.#endedBy ?? 'gone' }): void {
    this.#tabs?.post(event)
  }

  #unavailable(): void {
    this.#failures++
    if (isClear(this.#endedBy)) return void this.#learn()
    const { last = this.#state } = this.#state as { last?: SessionState }
    this.#set({ status: 'unavailable', ...(last.status === 'active' && { last }) })
  }

  #set(next: SessionState): void {
    this.#turn++
    this.#asks = 0
    const isNew = JSON.stringify(next) !== JSON.stringify(this.#state)
    if (isNew) this.#state = next
    this.#settle()
    if (isNew) notify(this.#listeners)
  }

  /** Opens or closes the socket as the state wants it, and plans the next question. */
  #settle(): void {
    const state = this.#state
    clearTimeout(this.#timer)
    if (!this.#tabs) return
    if (state.status === 'anonymous') this.#socket.close()
    let waitMs = jitter(this.#failures, POLL_MS)
    if (state.status === 'active') {
      const leads = this.#tabs.isLeader()
      if (leads) this.#socket.open()
      const leftMs = Math.min(state.expiresAt, state.idleExpiresAt) - Date.now()
      waitMs = Math.min(leads && !this.#socket.isLive() ? POLL_MS : SLOW_MS, Math.max(leftMs, 0) + 1000)
    } else if (state.status !== 'unavailable') return
    this.#checkAt(Date.now() + waitMs)
  }

  /** Timers stand still while a machine sleeps, so the clock is read now and then. */
  #checkAt(dueAt: number): void {
    const leftMs = dueAt - Date.now()
    if (leftMs <= 0) void this.check()
    else this.#timer = setTimeout(() => this.#checkAt(dueAt), Math.min(leftMs, CLOCK_MS))
  }

  /** Somebody says something: the socket of this tab, or another tab. */
  #hear(event: SessionEvent | SessionBody, tellOthers: boolean): void {
    const { status } = this.#state
    const isActive = status === 'active'
    if (tellOthers) this.#tell(event)
    if ('reason' in event) {
      if (status !== 'anonymous') this.#endedBy = event.reason
      // It is a hint: another tab may have logged in, and its new cookie may be under way.
      void this.#check(status === 'anonymous' || isClear(event.reason) ? 1 : ASKS, true)
    } else if (!tellOthers && (!isActive || this.#asks > 0)) {
      // It may have crossed the end of that session.
      void this.#check(1, true)
    } else if (!('why' in event)) this.#learn(event)
    else if (isActive) this.#set({ ...this.#state, expiring: event.why } as SessionState)
  }

  #onPage(event: PageEvent): void {
    if (event === 'pagehide') this.#part()
    else if (event === 'offline') this.#socket.close()
    else if (event === 'pageshow') this.#join()
    else if (event === 'online' || Date.now() - this.#askedAt > FRESH_MS) void this.check()
  }

  #join(): void {
    this.#tabs ??= joinTabs(
      `trading-bff:${this.#server.base}`,
      () => this.#settle(),
      (event) => this.#hear(event as SessionEvent, false),
    )
    void this.check()
  }

  #part(): void {
    clearTimeout(this.#timer)
    this.#turn++
    this.#socket.close()
    this.#tabs?.close()
    this.#tabs = undefined
  }
}

/** A login of another tab does not explain this end. */
function isClear(reason: EndReason | undefined): boolean {
  return reason !== undefined && reason !== 'replaced' && reason !== 'gone'
}
