import { startsKey } from '../store/keys.ts'
import { unlessAway, type StoreData } from '../store/store.ts'
import { MinuteCounts } from './minute-counts.ts'
import { limitsOf } from './networks.ts'

/** How long a client that has reached its limit has to wait at most. */
export const START_WINDOW_SECONDS = 60
const START_WINDOW_MS = START_WINDOW_SECONDS * 1000

/**
 * Limits how many logins a client may start per minute, over all instances, because each start stores a record for up to
 * an hour. The minute begins with the first start. Other unauthenticated requests that cause store lookups count too.
 *
 * This does not use rate-limiter-flexible: that needs a Redis client of its own, without this store's deadlines and
 * failover, and would replace only a single command.
 */
export class StartLimit {
  readonly #store: StoreData
  readonly #perMinute: number
  /** Counts for this process alone while the shared store is unavailable. */
  readonly #alone = new MinuteCounts()

  /** @param perMinute 0 means no limit */
  constructor(store: StoreData, perMinute: number) {
    this.#store = store
    this.#perMinute = perMinute
  }

  /**
   * Counts a start by a client. Returns false if it exceeds the limit.
   * @param weight how many starts this counts as
   */
  async allows(address: string, weight = 1): Promise<boolean> {
    if (this.#perMinute === 0) return true
    // Stops at the smallest network over its limit. Otherwise, one client could use up the limit of its whole site.
    for (const [network, limit] of limitsOf(address, this.#perMinute)) {
      if (!(await this.#isWithin(limit, network, weight))) return false
    }
    return true
  }

  async #isWithin(limit: number, network: string, weight: number): Promise<boolean> {
    const count = await unlessAway(this.#store.count(startsKey(network), weight, START_WINDOW_MS))
    return count === undefined ? this.#alone.allows(network, limit, weight) : count <= limit
  }
}
