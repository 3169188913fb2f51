import { LRUCache } from 'lru-cache'
import { sessionKey } from '../store/keys.ts'
import { StoreUnavailable, type StoreData } from '../store/store.ts'
import { NearCache } from './near-cache.ts'
import type { SeenSession } from './endings.ts'
import type { SessionCookie } from './session-cookie.ts'
import type { SessionRepository } from './repository.ts'
import type { Session } from './session.ts'
import { standstill } from '../time/standstill.ts'
import { storeNow } from '../time/store-time.ts'

/** How long no idle limit is moved after moving one has failed. */
const PAUSE_MS = 1000

/** The session that a request's cookie names. */
export type SessionLookup =
  | { readonly is: 'live'; readonly session: Session }
  | { readonly is: 'none' }
  | { readonly is: 'storeDown'; readonly cause: StoreUnavailable }

const NONE: SessionLookup = { is: 'none' }

/** A cookie value with a valid signature, and its session as this process last saw it. Before that, the limits are 0. */
interface VerifiedCookie extends SeenSession {
  readonly id: string
  endsAt: number
  idleEndsAt: number
  seenAt: number
}

/** Reads sessions. It can extend a live session, but neither create nor revive one. */
export class SessionReader {
  readonly #cookie: SessionCookie
  readonly #sessions: SessionRepository
  readonly near: NearCache
  /** Whether the store reports every change, so that a cached session is current. */
  readonly #isTracked: boolean
  /** By cookie value, so that a signature is verified once and not on every request. */
  readonly #verified: () => LRUCache<string, VerifiedCookie>
  /** Monotonic ms. */
  #pausedUntil = 0

  constructor(cookie: SessionCookie, sessions: SessionRepository, store: StoreData) {
    this.#cookie = cookie
    this.#sessions = sessions
    this.near = new NearCache(sessions, store)
    this.#isTracked = store.staleMs === Infinity
    // A signature of a secret that has been removed must not stay valid.
    this.#verified = cookie.perSecrets(() => new LRUCache({ maxSize: 100_000, sizeCalculation: () => 1 }))
  }

  /**
   * The session of a Cookie header as it is now: from the cache only if that is current, since another instance may just have moved
   * the idle limit. Does not count as use, unlike {@link use}.
   */
  read(header: string | undefined): SessionLookup | Promise<SessionLookup> {
    const cookie = this.#identify(header)
    if (cookie === undefined) return NONE
    const session = this.#isTracked ? this.near.peek(cookie.id, cookie.key) : undefined
    if (session === undefined) return this.#found(cookie, this.reload(cookie.id))
    note(cookie, session)
    return { is: 'live', session }
  }

  /**
   * The session of a Cookie header; synchronous if it is cached. Counts as use: if its idle limit is due, it is moved in the
   * background.
   */
  use(header: string | undefined): SessionLookup | Promise<SessionLookup> {
    const cookie = this.#identify(header)
    if (cookie === undefined) return NONE
    const session = this.near.peek(cookie.id, cookie.key)
    if (session === undefined) return this.#loadToUse(cookie)
    this.#used(cookie, session)
    return { is: 'live', session }
  }

  /** Uses the session of a Cookie header. It is live only if its idle limit has moved where that was due. */
  async extend(header: string | undefined): Promise<SessionLookup> {
    const found = await this.read(header)
    if (found.is !== 'live') return found
    const now = storeNow()
    const moved = await this.recheck(found.session, true)
    if (moved.is !== 'live' || !this.#sessions.isDue(moved.session.idleEndsAt, moved.session.record.endsAt, now))
      return moved
    return { is: 'storeDown', cause: new StoreUnavailable(new Error('the idle limit has not moved')) }
  }

  /** Reads a session by its id from the store. */
  reload(id: string): Promise<SessionLookup> {
    return lookup(this.near.load(id))
  }

  /**
   * The current state of a session that was read earlier.
   * @param isUse whether this counts as use
   */
  async recheck({ id, key, record }: Session, isUse: boolean): Promise<SessionLookup> {
    const session = this.#isTracked ? this.near.peek(id, key) : undefined
    if (session !== undefined && !(isUse && this.#sessions.isDue(session.idleEndsAt, record.endsAt))) {
      return { is: 'live', session }
    }
    return isUse ? lookup(this.near.touch({ id, key }, record.endsAt)) : this.reload(id)
  }

  async #loadToUse(cookie: VerifiedCookie): Promise<SessionLookup> {
    // One round trip reads the session and moves its limit. If this process knows that the limit is not due, it only reads.
    const isDue = this.#sessions.isDue(cookie.idleEndsAt, cookie.endsAt)
    const reading = isDue ? lookup(this.near.touch(cookie, cookie.endsAt)) : this.reload(cookie.id)
    const found = await this.#found(cookie, reading)
    if (found.is === 'live') this.#used(cookie, found.session)
    return found
  }

  /** What was read for a cookie. A session that is missing all of a sudden may be lost. */
  async #found(cookie: VerifiedCookie, reading: Promise<SessionLookup>): Promise<SessionLookup> {
    const found = await reading
    if (found.is === 'live') note(cookie, found.session)
    if (found.is === 'none' && cookie.seenAt !== -Infinity) {
      void this.#sessions.endings.recordLoss(cookie)
      cookie.seenAt = -Infinity
    }
    return found
  }

  /** Moves the idle limit in the background, if it is due. */
  #used(cookie: VerifiedCookie, session: Session): void {
    note(cookie, session)
    const { idleEndsAt, endsAt } = cookie
    const now = storeNow(standstill.monotonic)
    if (!this.#sessions.isDue(idleEndsAt, endsAt, now) || performance.now() < this.#pausedUntil) return
    const pause = (): number => (this.#pausedUntil = performance.now() + PAUSE_MS)
    this.near.touch(cookie, endsAt).then((moved) => {
      if (moved === undefined) return
      cookie.idleEndsAt = moved.idleEndsAt
      // The store refuses writes at present; trying again with every request would only load it.
      if (this.#sessions.isDue(moved.idleEndsAt, endsAt, now)) pause()
    }, pause)
  }

  #identify(header: string | undefined): VerifiedCookie | undefined {
    const value = this.#cookie.value(header)
    return value === undefined ? undefined : (this.#verified().get(value) ?? this.#verify(value))
  }

  #verify(value: string): VerifiedCookie | undefined {
    const id = this.#cookie.verify(value)
    if (id === undefined) return undefined
    const cookie = { id, key: sessionKey(id), endsAt: 0, idleEndsAt: 0, seenAt: -Infinity }
    this.#verified().set(value, cookie)
    return cookie
  }
}

/** Notes that the session of a cookie is live. The clocks were looked at a moment ago. */
function note(cookie: VerifiedCookie, { idleEndsAt, record: { endsAt } }: Session): void {
  cookie.endsAt = endsAt
  cookie.idleEndsAt = idleEndsAt
  cookie.seenAt = standstill.lookedAt
}

async function lookup(reading: Promise<Session | undefined>): Promise<SessionLookup> {
  try {
    const session = await reading
    return session === undefined ? NONE : { is: 'live', session }
  } catch (cause) {
    if (cause instanceof StoreUnavailable) return { is: 'storeDown', cause }
    throw cause
  }
}
