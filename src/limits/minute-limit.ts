import { LRUCache } from 'lru-cache'
import type { StoreData } from '../store/store.ts'

const WINDOW_MS = 60_000
/** More than this many who are over the limit at once are asked for again, which costs two round trips each. */
const MAX_REFUSED = 10_000

/** Limits what one user does in a minute, over all instances. The minute begins with the first time. */
export class MinuteLimit {
  readonly #store: Pick<StoreData, 'count' | 'readUntracked'>
  readonly #limit: number
  /** Store keys that are over the limit until they are forgotten, so that repeating costs the store nothing. */
  readonly #refused = new LRUCache<string, true>({ max: MAX_REFUSED, ttlResolution: 0 })

  constructor(store: Pick<StoreData, 'count' | 'readUntracked'>, limit: number) {
    this.#store = store
    this.#limit = limit
  }

  /**
   * Counts one time.
   * @param key store key of the count
   * @returns how long to wait if that exceeds the limit (ms)
   * @throws StoreUnavailable
   */
  async waitMs(key: string): Promise<number | undefined> {
    const knownMs = this.#refused.getRemainingTTL(key)
    if (knownMs > 0) return knownMs
    if ((await this.#store.count(key, 1, WINDOW_MS, true)) <= this.#limit) return undefined
    const now = Date.now()
    const { expiresAt = now } = (await this.#store.readUntracked(key)) ?? {}
    // The store's clock says when; a wrong one here must not make the wait longer than the minute.
    const leftMs = Math.min(Math.max(1, expiresAt - now), WINDOW_MS)
    this.#refused.set(key, true, { ttl: leftMs })
    return leftMs
  }
}
