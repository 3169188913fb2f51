import type { EndReason } from '../../../../client/dist/client.js'
import type { VirtualTime } from './virtual-time.ts'

/** A session as the server knows it; times in milliseconds. */
export interface ServedSession {
  readonly tag: string
  readonly subject: string
  readonly expiresAt: number
  idleAt: number
  endedAt: number | undefined
}

/** What a session socket is to the server. */
export interface ServedSocket {
  readonly session: ServedSession | undefined
  say(event: object): void
  close(code: number, reason: string): void
}

/** How long a session may be unused, and how long it lasts. */
const IDLE_MS = 1_800_000
const MAX_MS = 28_800_000
const WARN_MS = 60_000

/** The sessions of a server, and what it tells of them (docs/reference.md, The session). */
export class SessionService {
  readonly #time: VirtualTime
  readonly sockets = new Set<ServedSocket>()
  notice: object | undefined
  #issued = 0

  constructor(time: VirtualTime) {
    this.#time = time
  }

  isLive(session: ServedSession | undefined): session is ServedSession {
    return session !== undefined && session.endedAt === undefined
  }

  logIn(subject: string, before: ServedSession | undefined): ServedSession {
    if (before) this.end(before, 'replaced')
    const { now } = this.#time
    const session = {
      tag: `s${++this.#issued}`,
      subject,
      expiresAt: now + MAX_MS,
      idleAt: now + IDLE_MS,
      endedAt: undefined,
    }
    this.#watch(session)
    return session
  }

  /** Uses a session: its idle limit moves, and its sockets are told. */
  use(session: ServedSession): void {
    session.idleAt = Math.min(this.#time.now + IDLE_MS, session.expiresAt)
    this.#watch(session)
    this.tell(session)
  }

  /** Tells the sockets of a session what it is now. */
  tell(session: ServedSession): void {
    this.#time.later(300, () =>
      this.#toSockets(session, (socket) => socket.say({ event: 'session', ...this.body(session) })),
    )
  }

  announce(notice: object | undefined): void {
    this.notice = notice
    for (const socket of this.sockets) socket.say({ event: 'notice', notice: notice ?? null })
  }

  end(session: ServedSession, reason: EndReason): void {
    if (!this.isLive(session)) return
    session.endedAt = this.#time.now
    this.#time.later(reason === 'replaced' ? 1500 : 500, () => {
      this.#toSockets(session, (socket) => {
        // Where nobody could say why.
        socket.say({ event: 'ended', reason })
        socket.close(4401, 'session_expired')
      })
    })
  }

  open(socket: ServedSocket): void {
    if (!this.isLive(socket.session)) return socket.close(4401, 'login_required')
    this.sockets.add(socket)
    socket.say({ event: 'session', ...this.body(socket.session) })
    if (this.#endOf(socket.session) - this.#time.now < WARN_MS) socket.say(this.#expiring(socket.session))
  }

  body(session: ServedSession | undefined): object {
    const now = Math.floor(this.#time.now / 1000)
    const notice = this.notice && { notice: this.notice }
    if (!this.isLive(session)) return { authenticated: false, now, ...notice }
    const { tag, subject, expiresAt, idleAt } = session
    return {
      authenticated: true,
      now,
      session: tag,
      subject,
      scope: 'trade',
      expires_at: Math.floor(expiresAt / 1000),
      idle_expires_at: Math.floor(idleAt / 1000),
      ...notice,
    }
  }

  #endOf({ expiresAt, idleAt }: ServedSession): number {
    return Math.min(expiresAt, idleAt)
  }

  #expiring(session: ServedSession): object {
    const why = session.idleAt < session.expiresAt ? 'idle' : 'absolute'
    const [at, now] = [this.#endOf(session), this.#time.now].map((ms) => Math.floor(ms / 1000))
    return { event: 'expiring', at, why, now }
  }

  #toSockets(session: ServedSession, tell: (socket: ServedSocket) => void): void {
    for (const socket of [...this.sockets]) if (socket.session === session) tell(socket)
  }

  #watch(session: ServedSession): void {
    const end = this.#endOf(session)
    const isSame = (): boolean => this.isLive(session) && this.#endOf(session) === end
    this.#time.later(end - WARN_MS - this.#time.now, () => {
      if (isSame()) this.#toSockets(session, (socket) => socket.say(this.#expiring(session)))
    })
    this.#time.later(end - this.#time.now, () => {
      if (isSame()) this.end(session, session.idleAt < session.expiresAt ? 'idle' : 'expired')
    })
  }
}
