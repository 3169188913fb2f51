import type { EndReason } from '../core/client.ts'
import { problem } from './fake-api.ts'
import type { FakeSocket } from './fake-socket.ts'

/** A session that begins. */
export interface FakeSession {
  /** `trade` by default. */
  readonly scope?: string
  /** The id of the user; none by default, as on servers that do not know it. */
  readonly subject?: string
  /** How long the session lasts, in milliseconds; an hour by default. */
  readonly expiresInMs?: number
  /** How long it lasts unused, in milliseconds; as long as that by default. */
  readonly idleMs?: number
}

const HOUR_MS = 3_600_000

/** The session of the browser, and what the server does with those who have none. */
export class FakeSessions {
  #session: (FakeSession & { readonly id: string; readonly startedAt: number }) | undefined
  #usedAt = 0
  #issued = 0
  /** The sockets that end with the session. */
  readonly #sockets = new Set<FakeSocket>()

  /** Begins a session, in place of one before it. */
  begin(session: FakeSession): void {
    this.end('replaced')()
    this.#usedAt = Date.now()
    this.#session = { ...session, id: `session-${++this.#issued}`, startedAt: this.#usedAt }
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

  left(socket: FakeSocket): void {
    this.#sockets.delete(socket)
  }

  /** The server's own response to a request, which is its method and path; undefined if it passes the request on. */
  respond(request: string, query: string): Response | undefined {
    if (request === 'GET /auth/session') return Response.json(this.#body())
    if (request === 'POST /auth/logout') return this.#logOut(query === 'everywhere=true')
    if (request === 'GET /v1/health') return undefined
    if (!this.#body().authenticated) return problem(401, 'login_required', { login_url: '/auth/login' })
    this.#usedAt = Date.now()
    return request === 'POST /auth/session' ? new Response(null, { status: 204 }) : undefined
  }

  #logOut(isEverywhere: boolean): Response {
    const isKnown = this.#session?.subject !== undefined
    this.end('logout')()
    return isEverywhere && !isKnown ? problem(409, 'subject_unknown') : new Response(null, { status: 204 })
  }

  #body(): { readonly authenticated: boolean } & Readonly<Record<string, unknown>> {
    const now = Date.now()
    if (!this.#session) return { authenticated: false, now: seconds(now) }
    const {
      id: session,
      startedAt,
      scope = 'trade',
      subject,
      expiresInMs = HOUR_MS,
      idleMs = expiresInMs,
    } = this.#session
    const endsAt = startedAt + expiresInMs
    const idleEndsAt = Math.min(this.#usedAt + idleMs, endsAt)
    if (now >= idleEndsAt) {
      this.end(now >= endsAt ? 'expired' : 'idle')()
      return { authenticated: false, now: seconds(now) }
    }
    const times = { now: seconds(now), expires_at: seconds(endsAt), idle_expires_at: seconds(idleEndsAt) }
    return { authenticated: true, ...times, scope, subject, session }
  }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
