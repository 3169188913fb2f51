import { LRUCache } from 'lru-cache'
import { besideKey } from '../store/keys.ts'
import type { StoreData } from '../store/store.ts'
import type { ListedSession, SubjectIndex } from './subject-index.ts'
import { storeNow } from '../time/store-time.ts'

/** How long a reading counts. A page that asks all the time causes one reading of its subject in this time. */
const FRESH_MS = 5000
/** Store keys that are held at once, about 150 bytes each. Beyond it, the readings that were used least are forgotten. */
const MAX_KEYS = 20_000
/** A younger entry may belong to a login that has yet to create its session, unless there is a tombstone. */
const BEING_MADE_MS = 60_000

/** Finds which of the sessions that the index lists are live. */
export class LiveSessions {
  readonly #store: Pick<StoreData, 'readMany'>
  readonly #idleMs: number
  readonly #known: LRUCache<string, Set<string>>

  constructor(
    index: Pick<SubjectIndex, 'list'>,
    store: Pick<StoreData, 'readMany'>,
    idleMs: number,
    freshMs = FRESH_MS,
  ) {
    this.#store = store
    this.#idleMs = idleMs
    this.#known = new LRUCache<string, Set<string>>({
      maxSize: MAX_KEYS,
      sizeCalculation: ({ size }) => size + 1,
      ttl: freshMs,
      fetchMethod: async (subject) => this.#existing((await index.list(subject)).map(({ key }) => key)),
      // A reading that others push out of the cache still counts for the callers that wait for it.
      ignoreFetchAbort: true,
    })
  }

  /**
   * Store keys of the live sessions of a subject, by a reading that is a few seconds old at most. A subject may have a thousand,
   * so a page that asks often, or from many tabs, shares a reading. A failure is not kept.
   * @param ownKey store key of the live session that asks. A reading without it is from before its login, and would count the
   * session that it has replaced
   * @throws StoreUnavailable
   */
  async keysOf(subject: string, ownKey: string): Promise<ReadonlySet<string>> {
    const known = await this.#known.forceFetch(subject)
    if (known.has(ownKey)) return known
    const fresh = await this.#known.forceFetch(subject, { forceRefresh: true })
    // Where the index has lost the session, it causes one reading and not one with every question.
    return fresh.add(ownKey)
  }

  /** Tells which of these sessions are live now, or about to begin. @throws StoreUnavailable */
  async among(sessions: readonly ListedSession[]): Promise<(session: ListedSession) => boolean> {
    const live = await this.#existing(sessions.map(({ key }) => key))
    const young = sessions.filter((session) => !live.has(session.key) && this.#isYoung(session)).map(({ key }) => key)
    const tombstones = await this.#existing(young.map((key) => besideKey(key, 'tombstone')))
    const beginning = new Set(young.filter((key) => !tombstones.has(besideKey(key, 'tombstone'))))
    return ({ key }) => live.has(key) || beginning.has(key)
  }

  /** Whether a session that is missing may have yet to begin. One that was not used leaves no tombstone at its idle limit. */
  #isYoung({ startedAt }: ListedSession): boolean {
    return storeNow() - startedAt < Math.min(BEING_MADE_MS, this.#idleMs)
  }

  async #existing(keys: readonly string[]): Promise<Set<string>> {
    const values = await this.#store.readMany(keys)
    return new Set(keys.filter((_key, at) => values[at] !== undefined))
  }
}
