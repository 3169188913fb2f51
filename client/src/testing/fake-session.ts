import type { EndReason, OrdersPause } from '../core/client.ts'
import { problem } from './fake-api.ts'
import type { FakeSocket } from './fake-socket.ts'

/** A session that begins. */
export interface FakeSession {
  /** `trade` by default. */
  readonly scope?: string | undefined
  /** The id of the user; none by default, as on servers that do not know it. */
  readonly subject?: string | undefined
  /** How long the session lasts, in milliseconds; an hour by default. */
  readonly expiresInMs?: number | undefined
  /** How long it lasts unused, in milliseconds; as long as that by default. */
  readonly idleMs?: number | undefined
  /** That the orders of its user are paused; they are not by default. */
  readonly ordersPaused?: OrdersPause | undefined
}

const HOUR_MS = 3_600_000

/** The session of the browser, and what the server does with those who have none. */
export class FakeSessions {
  #session: (FakeSession & { readonly id: string; readonly startedAt: number }) | undefined
  #usedAt = 0
  /** The sessions of its user in other browsers. */
  #elsewhere: { readonly tag: string; readonly started_at: number; readonly device?: string }[] = []
  #issued = 0
  /** The sockets that end with the session. */
  readonly #sockets = new Set<FakeSocket>()

  /** Begins a session, in place of one before it. */
  begin(session: FakeSession): void {
    if (session.subject === undefined || session.subject !== this.#session?.subject) this.#elsewhere = []
    this.end('replaced')()
    this.#usedAt = Date.now()
    this.#session = { ...session, id: `session-${++this.#issued}`, startedAt: this.#usedAt }
  }

  /** Begins a session of the same user in another browser. @returns its tag */
  beginElsewhere(device: string | undefined): string {
    const tag = `session-${++this.#issued}`
    this.#elsewhere.unshift({ tag, started_at: seconds(Date.now()), ...(device !== undefined && { device }) })
    return tag
  }

  /**
   * Ends the session, if there is one, and tells the page why.
   * @returns a function that then closes the trading sockets
   */
  end(reason: EndReason): () => void {
    const sockets = [...this.#sockets]
    if (!this.#session) return () => undefined
    this.#session = undefined
    this.#sockets.clear()
    for (const socket of sockets) {
      if (socket.path !== '/ws/session') continue
      socket.deliver({ event: 'ended', reason })
      socket.end(4401, 'session_expired')
    }
    return () => {
      for (const socket of sockets) socket.end(4401, 'session_expired')
    }
  }

  /** Opens a socket that needs a session, or refuses it as the server does: it opens and closes at once. */
  accept(socket: FakeSocket): boolean {
    socket.open()
    const body = this.#body()
    if (!body.authenticated) {
      socket.end(4401, 'login_required')
      return false
    }
    this.#sockets.add(socket)
    if (socket.path === '/ws/session') socket.deliver({ event: 'session', ...body })
    return true
  }

  /** Pauses the orders of the session's user, or ends that, and tells the page. */
  pauseOrders(ordersPaused: OrdersPause | undefined): void {
    if (!this.#session) return
    this.#session = { ...this.#session, ordersPaused }
    for (const socket of this.#sockets)
      if (socket.path === '/ws/session') socket.deliver({ event: 'session', ...this.#body() })
  }

  left(socket: FakeSocket): void {
    this.#noteUse()
    this.#sockets.delete(socket)
  }

  /** An open trading socket is use of the session. */
  #noteUse(): void {
    if ([...this.#sockets].some(({ account }) => account !== undefined)) this.#usedAt = Date.now()
  }

  /** The server's own response to a request, which is its method and path; undefined if it passes the request on. */
  respond(request: string, query: string): Response | undefined {
    if (request === 'GET /auth/session') return Response.json(this.#body())
    if (request === 'POST /auth/logout') return this.#logOut(new URLSearchParams(query).get('everywhere') === 'true')
    if (request === 'GET /v1/health') return undefined
    if (!this.#body().authenticated) return problem(401, 'login_required', { login_url: '/auth/login' })
    if (/ \/auth\/sessions(?:\/|$)/.test(request)) return this.#ownSessions(request)
    this.#usedAt = Date.now()
    return request === 'POST /auth/session' ? new Response(null, { status: 204 }) : undefined
  }

  #logOut(isEverywhere: boolean): Response {
    const isKnown = this.#session?.subject !== undefined
    this.end('logout')()
    if (isEverywhere && isKnown) this.#elsewhere = []
    return isEverywhere && !isKnown ? problem(409, 'subject_unknown') : new Response(null, { status: 204 })
  }

  #ownSessions(request: string): Response | undefined {
    const { id, startedAt, subject } = this.#session ?? {}
    if (subject === undefined) return problem(409, 'subject_unknown')
    if (request === 'GET /auth/sessions') {
      const own = { tag: id, started_at: seconds(startedAt ?? 0), last_used_at: seconds(this.#usedAt), current: true }
      const others = this.#elsewhere.map((each) => ({ ...each, current: false }))
      const sessions = [own, ...others].toSorted((one, other) => other.started_at - one.started_at)
      return Response.json({ sessions, now: seconds(Date.now()) })
    }
    const [, tag] = /^DELETE \/auth\/sessions\/(.+)$/.exec(request) ?? []
    if (tag === undefined) return undefined
    if (tag === id) return problem(409, 'current_session')
    const left = this.#elsewhere.filter((each) => each.tag !== tag)
    if (left.length === this.#elsewhere.length) return problem(404, 'not_found')
    this.#elsewhere = left
    return new Response(null, { status: 204 })
  }

  #body(): { readonly authenticated: boolean } & Readonly<Record<string, unknown>> {
    const now = Date.now()
    this.#noteUse()
    if (!this.#session) return { authenticated: false, now: seconds(now) }
    const {
      id: session,
      startedAt,
      scope = 'trade',
      subject,
      expiresInMs = HOUR_MS,
      idleMs = expiresInMs,
      ordersPaused: orders_paused,
    } = this.#session
    const endsAt = startedAt + expiresInMs
    const idleEndsAt = Math.min(this.#usedAt + idleMs, endsAt)
    if (now >= idleEndsAt) {
      this.end(now >= endsAt ? 'expired' : 'idle')()
      return { authenticated: false, now: seconds(now) }
    }
    const times = { now: seconds(now), expires_at: seconds(endsAt), idle_expires_at: seconds(idleEndsAt) }
    return { authenticated: true, ...times, scope, subject, session, orders_paused }
  }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
