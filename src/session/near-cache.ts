import { LRUCache } from 'lru-cache'
import { sessionKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { Session, Sessions } from './sessions.ts'

const MAX_SESSIONS = 100_000
const MAX_BYTES = 256 * 1_048_576
/** What a session takes beside its texts: objects, map entries, shorter strings. */
const OVERHEAD_BYTES = 512

type Load = { readonly promise: Promise<Session | undefined> }

/**
 * Live sessions kept near, so that a request costs no round trip. The store itself says when one changed, or they are
 * kept for a moment only; misses are not kept, so an attacker cannot fill it.
 */
export class NearCache {
  readonly #sessions: Sessions
  readonly #staleMs: number
  readonly #live: LRUCache<string, Session>
  readonly #loads = new Map<string, Load>()
  /** Plain numbers, since the hot path counts them. */
  readonly counts = { hits: 0, misses: 0 }

  constructor(sessions: Sessions, store: Store, { maxBytes = MAX_BYTES } = {}) {
    this.#sessions = sessions
    this.#staleMs = store.staleMs
    this.#live = new LRUCache<string, Session>({
      max: MAX_SESSIONS,
      maxSize: maxBytes,
      sizeCalculation: bytesOf,
      ttlResolution: 0,
      ...(Number.isFinite(store.staleMs) && { ttl: store.staleMs }),
    })
    store.onChange((key) => this.#changed(key))
    // Own endings are acted on at once, before the store tells of them.
    sessions.onEnd((key) => this.#changed(key))
  }

  /** How many sessions are held, and about how many bytes they take. */
  get size(): { readonly sessions: number; readonly bytes: number } {
    return { sessions: this.#live.size, bytes: this.#live.calculatedSize }
  }

  /** A live session held near. */
  peek(id: string, key: string): Session | undefined {
    const session = this.#live.get(key)
    const isHit = session !== undefined && session.id === id && isLive(session)
    if (isHit) this.counts.hits++
    else this.counts.misses++
    return isHit ? session : undefined
  }

  /** Reads through. @throws StoreUnavailable */
  async load(id: string): Promise<Session | undefined> {
    const key = sessionKey(id)
    const pending = this.#loads.get(key)
    if (pending !== undefined) return pending.promise
    const load: Load = { promise: this.#read(id) }
    this.#loads.set(key, load)
    const askedAt = performance.now()
    try {
      const session = await load.promise
      // A change heard while reading took this load off the list: what was read may be old, so it is not kept.
      if (session !== undefined && this.#loads.get(key) === load) this.#keep(key, session, askedAt)
      return session
    } finally {
      if (this.#loads.get(key) === load) this.#loads.delete(key)
    }
  }

  async #read(id: string): Promise<Session | undefined> {
    const session = await this.#sessions.load(id)
    return session !== undefined && isLive(session) ? session : undefined
  }

  #keep(key: string, session: Session, askedAt: number): void {
    // It may have changed from the moment it was asked for. (A ttl of 0 would mean for ever.)
    const ttl = this.#staleMs - (performance.now() - askedAt)
    if (ttl === Infinity) this.#live.set(key, session)
    else if (ttl >= 1) this.#live.set(key, session, { ttl })
  }

  #changed(key: string | undefined): void {
    if (key === undefined) {
      this.#live.clear()
      this.#loads.clear()
    } else {
      this.#live.delete(key)
      this.#loads.delete(key)
    }
  }
}

/** About: as bench/sessions.ts measured it. All texts are ASCII, so a character takes a byte. */
function bytesOf({ id, key, sealed, record }: Session): number {
  const { accessToken, refreshToken = '', scope, loginKey } = record
  const texts = [id, key, sealed, accessToken, refreshToken, scope, loginKey]
  return OVERHEAD_BYTES + texts.reduce((sum, text) => sum + text.length, 0)
}

function isLive(session: Session): boolean {
  const now = Date.now()
  return now < session.idleEndsAt && now < session.record.endsAt
}
