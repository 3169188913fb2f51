import { networks } from '../http/client-address.ts'
import { startsKey } from '../store/keys.ts'
import { MemoryStore } from '../store/memory-store.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'

/** How long a client that has reached its limit waits at most. */
export const START_WINDOW_SECONDS = 60
/** How many times the limit of the smallest network a client may have (IPv6: /64) its larger ones (/56, /48) allow. */
const FACTORS = [1, 4, 16] as const

/**
 * How many logins one client may start in a minute, over all instances: each start costs a record that lives for an
 * hour. The minute begins with the first start. What else makes the store be asked on a stranger's word counts too.
 *
 * Not rate-limiter-flexible: it wants a client of its own to run its script on, which would go round the store's
 * deadlines and its changes of master; all it would replace is the counting of one command.
 */
export class StartLimit {
  readonly #store: Store
  readonly #perMinute: number
  /** Counts for this process alone while the shared store is away. */
  #own: MemoryStore | undefined

  /** @param perMinute 0: no limit */
  constructor(store: Store, perMinute: number) {
    this.#store = store
    this.#perMinute = perMinute
  }

  /**
   * Counts a start of a client. False when it is one too many.
   * @param weight how many starts it counts for
   */
  async allows(address: string, weight = 1): Promise<boolean> {
    if (this.#perMinute === 0) return true
    // From the smallest on, and no further than it is allowed: one client must not use up what its whole site may start.
    for (const [index, network] of networks(address).entries()) {
      const limit = this.#perMinute * (FACTORS[index] ?? 1)
      if ((await this.#count(startsKey(network), weight)) > limit) return false
    }
    return true
  }

  async #count(key: string, weight: number): Promise<number> {
    const windowEnd = Date.now() + START_WINDOW_SECONDS * 1000
    try {
      return await this.#store.count(key, weight, windowEnd)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      this.#own ??= new MemoryStore()
      return this.#own.count(key, weight, windowEnd)
    }
  }
}
