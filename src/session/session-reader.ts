import { LRUCache } from 'lru-cache'
import { sessionKey } from '../store/keys.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'
import { NearCache } from './near-cache.ts'
import type { SessionCookie } from './session-cookie.ts'
import type { Session, Sessions } from './sessions.ts'

/** Idle limits are moved at most this often for a session and process. */
const TOUCH_INTERVAL_MS = 60_000

/** What a request's cookie leads to. */
export type SessionLookup =
  | { readonly is: 'live'; readonly session: Session }
  | { readonly is: 'none' }
  | { readonly is: 'storeDown'; readonly cause: StoreUnavailable }

const NONE: SessionLookup = { is: 'none' }

type VerifiedId = { readonly id: string; readonly key: string }

/** The read-only door to sessions: it can extend one that lives, but neither make nor revive one. */
export class SessionReader {
  readonly #cookie: SessionCookie
  readonly #sessions: Sessions
  readonly #near: NearCache
  /** Cookie values whose signature was found good, so that it is checked once and not per request. */
  readonly #verified = new LRUCache<string, VerifiedId>({ max: 100_000 })
  /** When this process last moved the idle limit of a session (epoch ms). */
  readonly #touchedAt = new LRUCache<string, number>({ max: 100_000 })
  readonly touchEveryMs: number

  constructor(cookie: SessionCookie, sessions: Sessions, store: Store) {
    this.#cookie = cookie
    this.#sessions = sessions
    this.#near = new NearCache(sessions, store)
    this.touchEveryMs = Math.min(TOUCH_INTERVAL_MS, sessions.limits.idleMs / 10)
  }

  /** What the near cache did so far, and what it holds. */
  get nearCache(): NearCache['counts'] & NearCache['size'] {
    return { ...this.#near.counts, ...this.#near.size }
  }

  /** The session of a Cookie header. Synchronous when it is held near. Not a use: see {@link used}. */
  read(header: string | undefined): SessionLookup | Promise<SessionLookup> {
    const values = this.#cookie.values(header)
    const [value] = values
    if (value === undefined || values.length > 1) return NONE
    const verified = this.#verified.get(value) ?? this.#verify(value)
    if (verified === undefined) return NONE
    const session = this.#near.peek(verified.id, verified.key)
    return session === undefined ? this.reload(verified.id) : { is: 'live', session }
  }

  /** Reads a session by its id, past what is held near when that is no longer good. */
  async reload(id: string): Promise<SessionLookup> {
    try {
      const session = await this.#near.load(id)
      return session === undefined ? NONE : { is: 'live', session }
    } catch (cause) {
      if (cause instanceof StoreUnavailable) return { is: 'storeDown', cause }
      throw cause
    }
  }

  /** Notes that the session was used, which moves its idle limit now and then. Never waits, never fails. */
  used(session: Session): void {
    const { key, idleEndsAt, record } = session
    if (idleEndsAt >= record.endsAt) return
    const now = Date.now()
    const movedAt = Math.max(idleEndsAt - this.#sessions.limits.idleMs, this.#touchedAt.get(key) ?? 0)
    if (now - movedAt < this.touchEveryMs) return
    this.#touchedAt.set(key, now)
    // Lost in an outage, it is made up for by the next use.
    this.#sessions.touch(session).catch(() => undefined)
  }

  #verify(value: string): VerifiedId | undefined {
    const id = this.#cookie.verify(value)
    if (id === undefined) return undefined
    const verified = { id, key: sessionKey(id) }
    this.#verified.set(value, verified)
    return verified
  }
}
