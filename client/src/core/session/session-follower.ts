import { jitter } from '../base/backoff.ts'
import { notify } from '../base/errors.ts'
import { onPage, type PageEvent } from '../base/page.ts'
import { serverAt, type Server, type ServerOptions } from '../server.ts'
import { sessionSocket, type SessionSocket } from './session-socket.ts'
import type { SessionStore } from './session-store.ts'
import {
  sessionKey,
  type ActiveSession,
  type EndReason,
  type Notice,
  type SessionBody,
  type SessionEvent,
  type SessionState,
} from './session-state.ts'
import { EXPIRING_MS, SKEW_MS, SLOW_MS } from './session-times.ts'
import { joinTabs, type Tabs } from './tabs.ts'

type Phase = 'closed' | 'open' | 'leading' | 'away'

/**
 * Follows the session through `GET /auth/session`, the session socket and messages of other tabs. In each phase something owns the
 * next step:
 * - `closed`, before the first `subscribe` and after `close`: the page, which asks for every check.
 * - `open`: a check that is under way; after it the timer or, once the server has said that no user is logged in, the messages of
 *   other tabs and the page.
 * - `leading`: the same, and this tab alone keeps the session socket.
 * - `away`, in the back/forward cache: the page that is shown again.
 */
export class SessionFollower implements SessionStore {
  #phase: Phase = 'closed'
  #state: SessionState = { status: 'unknown' }
  readonly #server: Server
  readonly #socket: SessionSocket
  readonly #listeners = new Set<(isOther: boolean) => void>()
  #tabs: Tabs | undefined
  #leavePage: (() => void) | undefined
  /** Increases with every check and every change of the state, so that the response to an older check is dropped. */
  #version = 0
  #checksLeft = 0
  /** How many messages of other tabs have come since the check of one of them began; 0 if none is under way. */
  #heard = 0
  #failures = 0
  #skewMs!: number
  /** Why the last session ended or, until that is told, `gone`. */
  #endedBy: EndReason | undefined
  #notice: Notice | undefined
  #latest: Promise<void> | undefined
  #confirming: Promise<void> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  /** When the clock was last read; NaN while no check is scheduled. */
  #readAt!: number

  constructor(server: Server) {
    this.#server = server
    this.#socket = sessionSocket(server, (event) => this.#receive(event, true))
  }

  readonly get = (): SessionState => this.#state

  readonly subscribe = (listener: (isOther: boolean) => void): (() => void) => {
    const own = (isOther: boolean): void => listener(isOther)
    this.#listeners.add(own)
    if (this.#phase === 'closed') {
      this.#leavePage = onPage(this.#onPage)
      this.#enter('open')
    }
    return () => this.#listeners.delete(own)
  }

  /**
   * Asks the server for the session. A later check makes an earlier one end at once, so this resolves after the latest.
   * @param mayHaveEnded true to believe the end of the session only after four checks: the cookie of a new login may arrive
   * meanwhile
   * @param hint what another source has said. The other tabs have heard it too, and check for themselves: only that the session
   * is active after all is news to them
   */
  async #check(mayHaveEnded?: boolean, hint?: 'active' | 'anonymous'): Promise<void> {
    let last: Promise<void> | undefined
    for (this.#latest = this.#ask(mayHaveEnded, hint); last !== this.#latest; await last) last = this.#latest
  }

  async #ask(mayHaveEnded?: boolean, hint?: 'active' | 'anonymous'): Promise<void> {
    // Any other reason rules out that another tab has logged in.
    const isFinal = !/replaced|gone/.test(this.#endedBy ?? 'gone')
    // A final reason needs one check, even if a trading socket that ended too has asked for several.
    this.#checksLeft = isFinal ? 1 : Math.max(this.#checksLeft, mayHaveEnded ? 4 : 1)
    const version = ++this.#version
    do {
      // Without a valid response, the session may or may not be alive.
      const body = await this.#server.session()
      if (version !== this.#version) return
      if (!body) {
        this.#failures++
        if (isFinal) return void this.#apply()
        const state = this.#state as SessionState & { last?: ActiveSession }
        return this.#set({ status: 'unavailable', last: state.status === 'active' ? state : state.last })
      }
      this.#failures = 0
      const before = sessionKey(this.#state)
      if (body.authenticated || --this.#checksLeft <= 0) {
        const active = this.#apply(body)
        const isNews = !hint || (active && !before && hint !== 'active')
        if (isNews && before !== sessionKey(this.#state)) this.#broadcast(active)
        return
      }
      await new Promise((resolve) => void setTimeout(resolve, 600))
    } while (version === this.#version)
  }

  readonly check = (): Promise<void> => this.#check()

  readonly confirm = async (): Promise<boolean> => {
    // A page that keeps making calls confirms more often than a confirmation takes.
    await (this.#confirming ??= this.#check(true).finally(() => (this.#confirming = undefined)))
    return this.#state.status !== 'anonymous'
  }

  readonly end = (reason: EndReason): void => {
    const isAsking = this.#checksLeft
    this.#endedBy = reason
    this.#broadcast(this.#apply())
    // That check counts no more. It may have been about the next session, of which a page that was away has not heard.
    if (isAsking) void this.check()
  }

  readonly close = (): void => {
    this.#leavePage?.()
    this.#enter('closed')
  }

  #apply(body?: SessionBody): SessionBody | undefined {
    if (body) this.#notice = body.notice
    if (!body?.authenticated) return void this.#set({ status: 'anonymous', reason: this.#endedBy })
    const { now, expires_at, idle_expires_at, session, scope, subject, claims, orders_paused: ordersPaused } = body
    const skewMs = now * 1000 - Date.now()
    if (!(Math.abs(skewMs - this.#skewMs) < SKEW_MS)) this.#skewMs = skewMs
    // Unless somebody says why.
    this.#endedBy = 'gone'
    const expiresAt = expires_at * 1000 - this.#skewMs
    const idleExpiresAt = idle_expires_at * 1000 - this.#skewMs
    this.#set({
      status: 'active',
      session,
      expiresAt,
      idleExpiresAt,
      scope,
      subject,
      claims,
      ordersPaused,
      expiring:
        Math.min(expiresAt, idleExpiresAt) - Date.now() > EXPIRING_MS
          ? undefined
          : idleExpiresAt < expiresAt
            ? 'idle'
            : 'absolute',
    })
    return body
  }

  /** Sends an event to the other tabs. */
  #broadcast(event: SessionEvent | null = { reason: this.#endedBy ?? 'gone' }): void {
    this.#tabs?.post(event)
  }

  #set(next: SessionState): void {
    this.#version++
    this.#checksLeft = 0
    this.#show(next)
  }

  #show(state: SessionState): void {
    const before = this.#state
    const next = { ...state, notice: this.#notice }
    if (JSON.stringify(next) === JSON.stringify(before)) return this.#schedule()
    this.#state = next
    const isOther = sessionKey(before) !== sessionKey(next)
    // What is still on its way on the socket of another session would bring that one back.
    if (isOther) this.#socket.close()
    this.#schedule()
    notify(this.#listeners, (listener) => this.#phase === 'closed' || listener(isOther))
  }

  /** Opens the socket if the state wants it, and schedules the next check. */
  #schedule(): void {
    const state = this.#state
    const now = Date.now()
    clearTimeout(this.#timer)
    if (!this.#tabs || (state.status !== 'active' && !this.#failures)) return void (this.#readAt = NaN)
    // A server that could not tell is asked again, also after an end that was believed: the user may have logged in meanwhile.
    if (state.status !== 'active') return this.#checkAt(now + jitter(this.#failures))
    const endsAt = Math.min(state.expiresAt, state.idleExpiresAt) - (state.expiring ? 0 : EXPIRING_MS)
    this.#checkAt(
      Math.min(Math.max(endsAt, now) + 1000, now + (this.#phase === 'leading' ? this.#socket.open() : SLOW_MS)),
    )
  }

  /** Reads the clock every few seconds, because timers stand still while a machine sleeps. */
  #checkAt(dueAt: number): void {
    const now = Date.now()
    // Timers of a hidden page may be a minute late. A clock that goes back was set.
    const passedMs = now - this.#readAt
    const hasSlept = passedMs < -SKEW_MS || passedMs > 120_000
    this.#readAt = now
    // The server may have dropped the connection of a machine that sleeps, which that machine never learns.
    if (hasSlept) this.#socket.close()
    if (hasSlept || now >= dueAt) return void this.check()
    this.#timer = setTimeout(() => this.#checkAt(dueAt), Math.min(dueAt - now, 5000))
  }

  /** Handles an event of this tab's socket, which the other tabs need as well, or an event of another tab. */
  #receive(event: SessionEvent | null | undefined, isOwn: boolean): void {
    const state = this.#state
    const { reason, notice, session }: SessionEvent = event ?? {}
    const mayEnd = state.status !== 'anonymous'
    const body = this.#server.bodyOf(event)
    if (notice !== undefined) this.#notice = notice ?? undefined
    if (isOwn && event) this.#broadcast(event)
    if (reason) {
      if (mayEnd) this.#endedBy = reason
      // The event is only a hint: another tab may have logged in, and its new cookie may be about to arrive.
      void this.#check(mayEnd, 'anonymous')
    } else if (!body) this.#show(state)
    else if (isOwn || (state.status === 'active' && session === state.session && !this.#checksLeft)) this.#apply(body)
    else void this.#verify()
  }

  /** Checks what another tab says. Many messages may have waited for a frozen tab: one check is under way, and one follows. */
  async #verify(): Promise<void> {
    if (++this.#heard > 1) return
    do {
      this.#heard = 1
      await this.#check(false, 'active')
    } while (this.#heard > 1)
    this.#heard = 0
    // The other tab may have sent it before that session ended. Then it does not know, and the leader tells it. A leader that could
    // not ask has it ask, too, but does not know why that session should have ended.
    if (this.#state.status !== 'active' && this.#phase === 'leading')
      this.#broadcast(this.#failures ? { reason: 'gone' } : undefined)
  }

  readonly #onPage = (event: PageEvent): void => {
    if (event === 'pagehide') this.#enter('away')
    else if (event === 'pageshow') this.#enter('open')
    else if (event === 'offline') this.#socket.close()
    else void this.check()
  }

  /** The only place where the phase changes: what the one before has begun ends, unless an open tab takes the lead. */
  #enter(phase: Phase): void {
    this.#phase = phase
    if (phase !== 'leading') {
      // A check that is under way counts no more.
      this.#version++
      this.#socket.close()
      this.#tabs?.close()
      this.#tabs = undefined
    }
    this.#schedule()
    if (phase !== 'open') return
    this.#tabs = joinTabs(
      `trading-bff:${this.#server.base}`,
      () => this.#enter('leading'),
      (event) => this.#receive(event as SessionEvent, false),
    )
    void this.check()
  }
}

/**
 * Creates the session part of a client alone, for a page that only shows whether a user is logged in. It sends nothing before the
 * first `subscribe`.
 */
export function createSession(options: ServerOptions = {}): SessionStore {
  return new SessionFollower(serverAt(options))
}
