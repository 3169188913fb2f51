import { jitter } from './backoff.ts'
import { notify } from './errors.ts'
import { onPage, type PageEvent } from './page.ts'
import { SESSION_PATH, type Server } from './server.ts'
import { sessionSocket, type SessionSocket } from './session-socket.ts'
import type { SessionStore } from './session-store.ts'
import type { EndReason, SessionBody, SessionEvent, SessionState } from './session-state.ts'
import { joinTabs, type Tabs } from './tabs.ts'

/** Number of checks before the end of a session is believed, since the cookie of a new login may arrive meanwhile. */
const CHECKS = 4
const CHECK_INTERVAL_MS = 600
const RESPONSE_TIMEOUT_MS = 10_000
/** The interval of checks while a session socket is open. */
const SLOW_MS = 300_000
/** The interval of checks without a session socket. */
const POLL_MS = 60_000
const CLOCK_MS = 5000
/** A page that has just checked the session does not check it again when it gets the focus. */
const FRESH_MS = 1000
/** `now` is in whole seconds, so a smaller change of the difference between the clocks is ignored. */
const SKEW_MS = 2000

/** Follows the session through `GET /auth/session`, the session socket and messages of other tabs. */
export class SessionFollower implements SessionStore {
  #state: SessionState = { status: 'unknown' }
  readonly #server: Server
  readonly #socket: SessionSocket
  readonly #listeners = new Set<() => void>()
  #tabs: Tabs | undefined
  #leavePage: (() => void) | undefined
  /** Increases with every check and every change of the state, so that the response to an older check is dropped. */
  #version = 0
  #checksLeft = 0
  #checkedAt = 0
  #failures = 0
  #skewMs = NaN
  #endedBy: EndReason | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(server: Server) {
    this.#server = server
    this.#socket = sessionSocket(server, (event) => this.#receive(event, true), this.check)
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

  /**
   * Asks the server for the session, up to `checks` times while it reports none.
   * @param isHint true if another source caused the check, so that the other tabs check for themselves
   */
  async #check(checks: number, isHint = false): Promise<void> {
    this.#checksLeft = Math.max(this.#checksLeft, checks)
    this.#checkedAt = Date.now()
    const version = ++this.#version
    for (;;) {
      // Without a valid response, the session may or may not be alive.
      const body = await this.#fetchBody().catch(() => undefined)
      if (version !== this.#version) return
      if (!body) return this.#unavailable()
      this.#failures = 0
      const { status } = this.#state
      if (body.authenticated || --this.#checksLeft <= 0) {
        const active = this.#apply(body)
        // The other tabs need not learn that a visitor has never been logged in.
        const isNews = status !== this.#state.status && (active ?? status !== 'unknown')
        if (isNews && !isHint) this.#broadcast(active)
        return
      }
      await new Promise((resolve) => void setTimeout(resolve, CHECK_INTERVAL_MS))
      if (version !== this.#version) return
    }
  }

  readonly check = (): Promise<void> => this.#check(1)

  readonly confirm = async (): Promise<boolean> => {
    await this.#check(CHECKS)
    return this.#state.status !== 'anonymous'
  }

  readonly end = (reason: EndReason): void => {
    this.#endedBy = reason
    this.#broadcast(this.#apply())
  }

  readonly close = (): void => {
    this.#leavePage?.()
    this.#leavePage = undefined
    this.#leave()
  }

  async #fetchBody(): Promise<SessionBody | undefined> {
    const response = await this.#server.fetch(SESSION_PATH, {
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    })
    return response.ok ? ((await response.json()) as SessionBody) : undefined
  }

  #apply(body?: SessionBody): SessionBody | undefined {
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

  /** Sends an event to the other tabs. */
  #broadcast(event: SessionBody | SessionEvent = { event: 'ended', reason: this.#endedBy ?? 'gone' }): void {
    this.#tabs?.post(event)
  }

  #unavailable(): void {
    this.#failures++
    if (isFinal(this.#endedBy)) return void this.#apply()
    const { last = this.#state } = this.#state as { last?: SessionState }
    this.#set({ status: 'unavailable', ...(last.status === 'active' && { last }) })
  }

  #set(next: SessionState): void {
    this.#version++
    this.#checksLeft = 0
    const isNew = JSON.stringify(next) !== JSON.stringify(this.#state)
    if (isNew) this.#state = next
    this.#schedule()
    if (isNew) notify(this.#listeners)
  }

  /** Opens or closes the socket to match the state, and schedules the next check. */
  #schedule(): void {
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

  /** Reads the clock every few seconds, because timers stand still while a machine sleeps. */
  #checkAt(dueAt: number): void {
    const leftMs = dueAt - Date.now()
    if (leftMs <= 0) void this.check()
    else this.#timer = setTimeout(() => this.#checkAt(dueAt), Math.min(leftMs, CLOCK_MS))
  }

  /** Handles an event of this tab's socket, which the other tabs need as well, or an event of another tab. */
  #receive(event: SessionEvent | SessionBody, isOwn: boolean): void {
    const { status } = this.#state
    const isActive = status === 'active'
    if (isOwn) this.#broadcast(event)
    if ('reason' in event) {
      if (status !== 'anonymous') this.#endedBy = event.reason
      // The event is only a hint: another tab may have logged in, and its new cookie may be about to arrive.
      void this.#check(status === 'anonymous' || isFinal(event.reason) ? 1 : CHECKS, true)
    } else if (!isOwn && (!isActive || this.#checksLeft > 0)) {
      // The other tab may have sent this before that session ended.
      void this.#check(1, true)
    } else if (!('why' in event)) this.#apply(event)
    else if (isActive) this.#set({ ...this.#state, expiring: event.why } as SessionState)
  }

  #onPage(event: PageEvent): void {
    if (event === 'pagehide') this.#leave()
    else if (event === 'offline') this.#socket.close()
    else if (event === 'pageshow') this.#join()
    else if (event === 'online' || Date.now() - this.#checkedAt > FRESH_MS) void this.check()
  }

  #join(): void {
    this.#tabs ??= joinTabs(
      `trading-bff:${this.#server.base}`,
      () => this.#schedule(),
      (event) => this.#receive(event as SessionEvent, false),
    )
    void this.check()
  }

  #leave(): void {
    clearTimeout(this.#timer)
    this.#version++
    this.#socket.close()
    this.#tabs?.close()
    this.#tabs = undefined
  }
}

/** True if the reason rules out that another tab has logged in. */
function isFinal(reason: EndReason | undefined): boolean {
  return reason !== undefined && reason !== 'replaced' && reason !== 'gone'
}
