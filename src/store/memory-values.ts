import { LRUCache } from 'lru-cache'
import type { StoredValue } from './store.ts'

/** More keys than one development process ever holds; the oldest are evicted first. */
const MAX_KEYS = 100_000

/** Values by key in the memory of this process, each until its time. */
export class MemoryValues {
  readonly #values: LRUCache<string, StoredValue>
  readonly #notify: (key: string) => void

  /** @param notify told of every change, expiry included */
  constructor(notify: (key: string) => void) {
    this.#notify = notify
    this.#values = new LRUCache({
      // With `max` it would take room for all of them at once.
      maxSize: MAX_KEYS,
      sizeCalculation: () => 1,
      ttl: 1,
      ttlResolution: 0,
      disposeAfter: (_value, key, reason) => {
        if (reason === 'expire' || reason === 'evict') notify(key)
      },
    })
  }

  get(key: string): StoredValue | undefined {
    return this.#values.get(key)
  }

  keys(): string[] {
    return [...this.#values.keys()]
  }

  /** Always returns true. */
  write(key: string, value: string, expiresAt: number): true {
    const ttl = expiresAt - Date.now()
    // To lru-cache a ttl of 0 means "never expires".
    if (ttl <= 0) this.#values.delete(key)
    else this.#values.set(key, { value, expiresAt }, { ttl })
    this.#notify(key)
    return true
  }

  /** Returns whether there was a value. */
  remove(key: string): boolean {
    const isRemoved = this.#values.delete(key)
    if (isRemoved) this.#notify(key)
    return isRemoved
  }

  clear(): void {
    this.#values.clear()
  }
}
