import { LRUCache } from 'lru-cache'

/** How long a reading counts. A page that asks all the time causes one reading of its subject in this time. */
const FRESH_MS = 5000
/** Store keys that are held at once, about 150 bytes each. Beyond it, the readings that were used least are forgotten. */
const MAX_KEYS = 20_000

/** Reads the store keys of the live sessions of a subject. @throws StoreUnavailable */
type Read = (subject: string) => Promise<readonly string[]>

/**
 * The live sessions of subjects, as they were a moment ago. A subject may have a thousand, so a page that asks often, or
 * from many tabs, shares a reading. A failure is not kept.
 */
export class LiveSessions {
  readonly #known: LRUCache<string, ReadonlySet<string>>

  constructor(read: Read, freshMs = FRESH_MS) {
    this.#known = new LRUCache<string, ReadonlySet<string>>({
      maxSize: MAX_KEYS,
      sizeCalculation: ({ size }) => size + 1,
      ttl: freshMs,
      fetchMethod: async (subject) => new Set(await read(subject)),
      // A reading that others push out of the cache still counts for the callers that wait for it.
      ignoreFetchAbort: true,
    })
  }

  /** Store keys, by a reading that is a few seconds old at most. @throws StoreUnavailable */
  of(subject: string): Promise<ReadonlySet<string>> {
    return this.#known.forceFetch(subject)
  }
}
