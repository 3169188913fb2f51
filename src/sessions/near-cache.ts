import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { sessionKey } from '../store/keys.ts'
import { StoreUnavailable, type StoreData } from '../store/store.ts'
import { standstill } from '../time/standstill.ts'
import { storeNow } from '../time/store-time.ts'
import { within } from '../time/within.ts'
import type { SessionRepository } from './repository.ts'
import { expiryOf, isLive, type Session } from './session.ts'

const MAX_SESSIONS = 100_000
const MAX_BYTES = 256 * 1_048_576
/** Memory of a cached session besides its texts: objects, map entries, shorter strings. */
const OVERHEAD_BYTES = 512

/**
 * A cached session is not used for longer than this, even if the store tracks changes: Redis tracks a limited number of
 * keys and does not always report which it dropped. A session in use is read once a minute anyway, when its idle limit
 * moves.
 */
export const MAX_UNREAD_MS = 120_000
/** How long a caller waits for the first reading after this process stood still. */
export const MAX_DEAF_MS = 1000
/** The pause before it is tried again. */
const AGAIN_MS = 50

interface Load {
  readonly isTouch: boolean
  readonly promise: Promise<Session | undefined>
}

/**
 * Caches live sessions in this process, so that a request costs no round trip. The store reports changes; if it cannot,
 * sessions are cached only for a moment. Misses are not cached, so that an attacker cannot fill the cache.
 *
 * After this process stood still the cache says nothing before it has heard again: reports may be on their way. Where the store
 * reports every change, one reading of any session that began after that is enough, since its reply comes behind all reports on
 * the same connection. Otherwise each session is read again.
 */
export class NearCache {
  readonly #sessions: SessionRepository
  readonly #maxSessions: number
  readonly #staleMs: number
  /** Whether the store reports every change. Otherwise its reports may be late by seconds, as when a server hangs. */
  readonly #isTracked: boolean
  readonly #live: LRUCache<string, Session>
  readonly #loads = new Map<string, Load>()
  readonly #readListeners: ((session: Session) => void)[] = []
  /** The standstills of this process of which the cache knows. */
  #standstills = standstill.count
  /** Whether this process has heard from the store since the last of them. */
  #hasHeard = true
  /** The sessions that were cached before, and were not read since, where each must be read again. */
  #unread = new Set<string>()
  /** Plain numbers, because the hot path increments them. */
  readonly counts = { hits: 0, misses: 0 }

  constructor(
    sessions: SessionRepository,
    store: StoreData,
    { maxSessions = MAX_SESSIONS, maxBytes = MAX_BYTES, maxUnreadMs = MAX_UNREAD_MS } = {},
  ) {
    this.#sessions = sessions
    this.#maxSessions = maxSessions
    this.#staleMs = Math.min(store.staleMs, maxUnreadMs)
    this.#isTracked = store.staleMs === Infinity
    this.#live = new LRUCache<string, Session>({
      maxSize: maxBytes,
      sizeCalculation: bytesOf,
      ttlResolution: 0,
      ttl: this.#staleMs,
      // Every use of the cache looks at the clocks before.
      perf: { now: () => standstill.lookedAt },
      // When a session is found missing, #forget() needs the stale entry to see which of its limits has passed.
      noDeleteOnStaleGet: true,
    })
    store.onChange((key) => this.#changed(key))
    // This process acts at once on sessions that it ends itself, without waiting for the store's notification.
    sessions.endings.onEnd(({ key }) => {
      this.#loads.delete(key)
      this.#live.delete(key)
    })
  }

  /** Calls `listener` for every session that is read from the store, unless it changed during the read. */
  onRead(listener: (session: Session) => void): void {
    this.#readListeners.push(listener)
  }

  /** The number of cached sessions and the approximate memory they use. */
  get size(): { readonly sessions: number; readonly bytes: number } {
    return { sessions: this.#live.size, bytes: this.#live.calculatedSize }
  }

  /** A cached session that is still live. */
  peek(id: string, key: string): Session | undefined {
    const session = this.#isHeard() ? this.#live.get(key) : undefined
    if (session !== undefined && session.id === id && isLive(session, storeNow(standstill.monotonic))) {
      this.counts.hits++
      return session
    }
    this.counts.misses++
    return undefined
  }

  /**
   * Whether a session is still as this process has read it: within its limits, and without a report that it has changed or
   * ended. How long ago it was read does not matter here, unlike in {@link peek}, if the store reports every change.
   */
  isCurrent({ id, key }: Pick<Session, 'id' | 'key'>): boolean {
    if (!this.#isHeard()) return false
    const kept = this.#live.peek(key, { allowStale: this.#isTracked })
    return kept !== undefined && kept.id === id && isLive(kept, storeNow(standstill.monotonic))
  }

  /** Reads a session from the store into the cache. @throws StoreUnavailable */
  load(id: string): Promise<Session | undefined> {
    return this.#readOnce(sessionKey(id), false, () => this.#sessions.load(id))
  }

  /** Like {@link load}, but counts as use: see {@link SessionRepository.touch}. @throws StoreUnavailable */
  touch({ id, key }: Pick<Session, 'id' | 'key'>, endsAt: number): Promise<Session | undefined> {
    return this.#readOnce(key, true, () => this.#sessions.touch(id, endsAt))
  }

  /** Concurrent readers share one round trip, except that a touch does not join a mere read. */
  #readOnce(key: string, isTouch: boolean, read: () => Promise<Session | undefined>): Promise<Session | undefined> {
    const once = (): Promise<Session | undefined> => {
      const pending = this.#loads.get(key)
      if (pending !== undefined && (pending.isTouch || !isTouch)) return pending.promise
      const load: Load = { isTouch, promise: this.#read(key, read, () => this.#loads.get(key) === load) }
      this.#loads.set(key, load)
      return load.promise
    }
    return this.#isHeard() && !this.#unread.has(key) ? once() : soon(once)
  }

  /** Whether what the store has reported so far is all, as far as both clocks of this process show. */
  #isHeard(): boolean {
    const { count } = standstill
    if (count !== this.#standstills) {
      this.#standstills = count
      this.#hasHeard = !this.#isTracked
      // A read that was asked for before may have been answered before.
      this.#loads.clear()
      if (!this.#isTracked) {
        // Not its keys(): those of stale entries are not among them.
        this.#unread = new Set(this.#live.dump().map(([each]) => each))
        this.#live.clear()
      }
    }
    return this.#hasHeard
  }

  /** @param isNewest false if a change was reported during the read, whose result may then be stale and is not cached */
  async #read(
    key: string,
    read: () => Promise<Session | undefined>,
    isNewest: () => boolean,
  ): Promise<Session | undefined> {
    const [askedAt, standstills] = [standstill.now(), this.#standstills]
    let session: Session | undefined
    try {
      session = await read()
      this.#isHeard()
      if (standstills === this.#standstills) {
        this.#hasHeard = true
        this.#unread.delete(key)
      }
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
    for (const listener of this.#readListeners) listener(session)
    // The session may have changed at any time since the request was sent. (A ttl of 0 would mean forever.)
    const ttl = Math.max(1, this.#staleMs - (standstill.now() - askedAt))
    this.#live.set(key, session, { ttl })
    // The cache's own `max` option would allocate memory for all entries at every start.
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
    if (expiryOf(session) !== undefined) void this.#sessions.endings.recordExpiry(session)
  }
}

/**
 * Reads after a standstill, when the connection may have to be opened anew.
 * @throws StoreUnavailable when there is no reply in time
 */
async function soon(read: () => Promise<Session | undefined>): Promise<Session | undefined> {
  const giveUpAt = standstill.now() + MAX_DEAF_MS
  let cause: unknown = new StoreUnavailable(new Error('nothing was heard since this process stood still'))
  for (let leftMs = MAX_DEAF_MS; leftMs > 0; leftMs = giveUpAt - standstill.now()) {
    try {
      const reading = read().then((session) => ({ session }))
      const found = await within(leftMs, reading)
      if (found !== undefined) return found.session
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      cause = error
      await delay(AGAIN_MS)
    }
  }
  throw cause
}

/** Approximate, as measured by bench/cases/sessions.ts. All texts are ASCII, so a character takes one byte. */
function bytesOf({ id, key, sealed, record }: Session): number {
  const { accessToken, refreshToken = '', scope, loginKey, subject = '', oidc } = record
  const texts = [id, key, sealed, accessToken, refreshToken, scope, loginKey, subject, oidc ? JSON.stringify(oidc) : '']
  return OVERHEAD_BYTES + texts.reduce((sum, text) => sum + text.length, 0)
}
