import { LRUCache } from 'lru-cache'
import type { StoreData } from '../store/store.ts'
import { storeNow } from '../time/store-time.ts'

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
    const now = storeNow()
    const { expiresAt = now + 1 } = (await this.#store.readUntracked(key)) ?? {}
    const leftMs = expiresAt - now
    // That is by the store's clock. If it cannot be, the clock here is wrong.
    const waitMs = leftMs > 0 && leftMs <= WINDOW_MS ? leftMs : WINDOW_MS
    this.#refused.set(key, true, { ttl: waitMs })
    return waitMs
  }
}
