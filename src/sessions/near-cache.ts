import { LRUCache } from 'lru-cache'
import { sessionKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import { expiryOf, type Session, type SessionRepository } from './repository.ts'

const MAX_SESSIONS = 100_000
const MAX_BYTES = 256 * 1_048_576
/** What a session takes beside its texts: objects, map entries, shorter strings. */
const OVERHEAD_BYTES = 512

/**
 * Nothing is relied on for longer, whatever the store promises: Redis watches a limited number of keys, and does not
 * always say which it gave up. A session in use is read once a minute anyway, when its idle limit moves.
 */
export const MAX_UNREAD_MS = 120_000

interface Load {
  readonly isTouch: boolean
  readonly promise: Promise<Session | undefined>
}

/** What a session is found by. */
export interface SessionName {
  readonly id: string
  readonly key: string
}

/**
 * Live sessions kept near, so that a request costs no round trip. The store itself says when one changed, or they are
 * kept for a moment only; misses are not kept, so an attacker cannot fill it.
 */
export class NearCache {
  readonly #sessions: SessionRepository
  readonly #maxSessions: number
  readonly #staleMs: number
  readonly #live: LRUCache<string, Session>
  readonly #loads = new Map<string, Load>()
  /** Plain numbers, since the hot path counts them. */
  readonly counts = { hits: 0, misses: 0 }

  constructor(
    sessions: SessionRepository,
    store: Store,
    { maxSessions = MAX_SESSIONS, maxBytes = MAX_BYTES, maxUnreadMs = MAX_UNREAD_MS } = {},
  ) {
    this.#sessions = sessions
    this.#maxSessions = maxSessions
    this.#staleMs = Math.min(store.staleMs, maxUnreadMs)
    this.#live = new LRUCache<string, Session>({
      maxSize: maxBytes,
      sizeCalculation: bytesOf,
      ttlResolution: 0,
      ttl: this.#staleMs,
      // What is too old to be served still tells, once it is found missing, which of its limits it was past.
      noDeleteOnStaleGet: true,
    })
    store.onChange((key) => this.#changed(key))
    // Own endings are acted on at once, whatever the store tells of them.
    sessions.onEnd((key) => {
      this.#loads.delete(key)
      this.#live.delete(key)
    })
  }

  /** How many sessions are held, and about how many bytes they take. */
  get size(): { readonly sessions: number; readonly bytes: number } {
    return { sessions: this.#live.size, bytes: this.#live.calculatedSize }
  }

  /** A live session held near. */
  peek(id: string, key: string): Session | undefined {
    const session = this.#live.get(key)
    if (session !== undefined && session.id === id && isLive(session)) {
      this.counts.hits++
      return session
    }
    this.counts.misses++
    return undefined
  }

  /** Reads through. @throws StoreUnavailable */
  load(id: string): Promise<Session | undefined> {
    return this.#through(sessionKey(id), false, () => this.#sessions.load(id))
  }

  /** Reads through, and counts as use: see {@link SessionRepository.touch}. @throws StoreUnavailable */
  touch({ id, key }: SessionName, endsAt: number): Promise<Session | undefined> {
    return this.#through(key, true, () => this.#sessions.touch(id, endsAt))
  }

  /** Who asks at the same moment shares an answer; but a touch is only shared with a touch. */
  #through(
    key: string,
    isTouch: boolean,
    read: () => Promise<Session | undefined>,
  ): Promise<Session | undefined> {
    const pending = this.#loads.get(key)
    if (pending !== undefined && (pending.isTouch || !isTouch)) return pending.promise
    const load: Load = { isTouch, promise: this.#read(key, read, () => this.#loads.get(key) === load) }
    this.#loads.set(key, load)
    return load.promise
  }

  /** @param isNewest false once a change was heard while reading: what was read may be old, so it is not kept */
  async #read(
    key: string,
    read: () => Promise<Session | undefined>,
    isNewest: () => boolean,
  ): Promise<Session | undefined> {
    const askedAt = performance.now()
    let session: Session | undefined
    try {
      session = await read()
      if (session !== undefined && !isLive(session)) session = undefined
    } finally {
      if (isNewest()) {
        this.#loads.delete(key)
        if (session === undefined) this.#forget(key)
        else this.#keep(key, session, askedAt)
      }
    }
    return session
  }

  #keep(key: string, session: Session, askedAt: number): void {
    // It may have changed from the moment it was asked for. (A ttl of 0 would mean for ever.)
    const ttl = this.#staleMs - (performance.now() - askedAt)
    if (ttl < 1) return
    this.#live.set(key, session, { ttl })
    // A `max` of the cache would take its memory, and the time to make it, at every start.
    if (this.#live.size > this.#maxSessions) this.#live.pop()
  }

  #changed(key: string | undefined): void {
    if (key === undefined) {
      this.#live.clear()
      this.#loads.clear()
    } else {
      this.#loads.delete(key)
      this.#forget(key)
    }
  }

  #forget(key: string): void {
    const session = this.#live.peek(key, { allowStale: true })
    if (session === undefined) return
    this.#live.delete(key)
    if (expiryOf(session) !== undefined) void this.#sessions.recordExpiry(session)
  }
}

/** About: as bench/cases/sessions.ts measured it. All texts are ASCII, so a character takes a byte. */
function bytesOf({ id, key, sealed, record }: Session): number {
  const { accessToken, refreshToken = '', scope, loginKey } = record
  const texts = [id, key, sealed, accessToken, refreshToken, scope, loginKey]
  return OVERHEAD_BYTES + texts.reduce((sum, text) => sum + text.length, 0)
}

function isLive(session: Session): boolean {
  const now = Date.now()
  return now < session.idleEndsAt && now < session.record.endsAt
}
