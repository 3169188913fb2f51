import { network } from '../http/client-address.ts'
import { startsKey } from '../store/keys.ts'
import { MemoryStore } from '../store/memory-store.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'

const WINDOW_MS = 60_000

/**
 * How many logins one client may start in a minute, over all instances: each start costs a record that lives for an
 * hour. The minute begins with the first start.
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

  /** Counts a start of a client. False when it is one too many. */
  async allows(address: string): Promise<boolean> {
    if (this.#perMinute === 0) return true
    const key = startsKey(network(address))
    const windowEnd = Date.now() + WINDOW_MS
    try {
      return (await this.#store.count(key, windowEnd)) <= this.#perMinute
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      this.#own ??= new MemoryStore()
      return (await this.#own.count(key, windowEnd)) <= this.#perMinute
    }
  }
}
