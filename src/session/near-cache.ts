import { LRUCache } from 'lru-cache'
import { sessionKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { Session, Sessions } from './sessions.ts'

const MAX_SESSIONS = 100_000

type Load = { readonly promise: Promise<Session | undefined> }

/**
 * Live sessions kept near, so that a request costs no round trip. The store itself says when one changed; misses are
 * not kept, so an attacker cannot fill it.
 */
export class NearCache {
  readonly #sessions: Sessions
  readonly #live = new LRUCache<string, Session>({ max: MAX_SESSIONS })
  readonly #loads = new Map<string, Load>()

  constructor(sessions: Sessions, store: Store) {
    this.#sessions = sessions
    store.onChange((key) => this.#changed(key))
    // Own endings are acted on at once, before the store tells of them.
    sessions.onEnd((key) => this.#changed(key))
  }

  /** A live session held near. */
  peek(id: string, key: string): Session | undefined {
    const session = this.#live.get(key)
    return session !== undefined && session.id === id && isLive(session) ? session : undefined
  }

  /** Reads through. @throws StoreUnavailable */
  async load(id: string): Promise<Session | undefined> {
    const key = sessionKey(id)
    const pending = this.#loads.get(key)
    if (pending !== undefined) return pending.promise
    const load: Load = { promise: this.#sessions.load(id) }
    this.#loads.set(key, load)
    try {
      const session = await load.promise
      if (session === undefined || !isLive(session)) return undefined
      // A change heard while reading took this load off the list: what was read may be old, so it is not kept.
      if (this.#loads.get(key) === load) this.#live.set(key, session)
      return session
    } finally {
      if (this.#loads.get(key) === load) this.#loads.delete(key)
    }
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

function isLive(session: Session): boolean {
  const now = Date.now()
  return now < session.idleEndsAt && now < session.record.endsAt
}
