import { randomBytes } from 'node:crypto'
import { within } from '../time/within.ts'
import { FINGERPRINT_KEY } from './keys.ts'
import type { StoreData } from './store.ts'
import { storeNow } from '../time/store-time.ts'

/** The key stays until the store forgets it. Then all fingerprints are others. */
const KEPT_MS = 10 * 365 * 86_400_000
/** A scrape of the metrics waits no longer than this. */
const SCRAPE_WAIT_MS = 250

/**
 * The random value that all instances of a store have in common, and nobody else has: it keys the fingerprints of secrets, so
 * that they can be compared among these instances and tell nothing to others. It also tells a store from every other.
 */
export class FingerprintKey {
  readonly #store: Pick<StoreData, 'create' | 'readUntracked'>
  #latest: string | undefined
  #reading: Promise<string | undefined> | undefined

  constructor(store: Pick<StoreData, 'create' | 'readUntracked'>) {
    this.#store = store
  }

  /**
   * The value, as the store had it when it last replied; undefined before that. Makes one if there is none. Several metrics of one
   * scrape ask the store once. Never rejects.
   */
  async read(): Promise<string | undefined> {
    return (this.#reading ??= this.#ask().finally(() => (this.#reading = undefined)))
  }

  async #ask(): Promise<string | undefined> {
    // Each time, since the store may have forgotten it, and another instance may have made a new one.
    const found = this.#readOrMake().catch(() => undefined)
    return (this.#latest = (await within(SCRAPE_WAIT_MS, found)) ?? this.#latest)
  }

  async #readOrMake(): Promise<string | undefined> {
    const found = await this.#store.readUntracked(FINGERPRINT_KEY)
    if (found !== undefined) return found.value
    await this.#store.create(FINGERPRINT_KEY, randomBytes(32).toString('base64url'), storeNow() + KEPT_MS)
    // Another instance may have been faster.
    return (await this.#store.readUntracked(FINGERPRINT_KEY))?.value
  }
}
