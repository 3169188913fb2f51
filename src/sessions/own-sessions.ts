import { LRUCache } from 'lru-cache'
import { MinuteLimit } from '../limits/minute-limit.ts'
import { partKey } from '../store/keys.ts'
import type { StoreData } from '../store/store.ts'
import { pageTag, type Session } from './session.ts'
import type { Cause, ListedSession, SubjectIndex } from './subject-index.ts'

/** How long a reading counts. */
const FRESH_MS = 5000
/** An end is remembered for longer than that, so that no instance shows what it has read before. */
const REMEMBERED_MS = 3 * FRESH_MS
/** A page learns of this many sessions, the newest. */
const MAX_LISTED = 100
const MAX_LISTINGS_PER_MINUTE = 10
/** Enough to end all sessions one by one. Each attempt opens all entries of the subject, which costs some milliseconds of CPU. */
const MAX_ENDS_PER_MINUTE = 120
/** Sessions that are held at once, about 300 bytes each. Beyond it, the readings that were used least are forgotten. */
const MAX_HELD = 20_000

/** A session of the index that is live. */
export interface LiveSession extends ListedSession {
  /** Up to a minute early, never late; undefined where it is not known (epoch ms). */
  readonly lastUsedAt: number | undefined
}

/** A session as the pages of its subject may know it. Times are epoch ms. */
interface OwnSession {
  /** The tag in `/auth/session`. */
  readonly tag: string
  readonly startedAt: number
  /** Up to a minute early, never late; undefined where it is not known. */
  readonly lastUsedAt: number | undefined
  /** Whether it is the session of the page that asks. */
  readonly isCurrent: boolean
  /** The browser and the system of its login, as far as that said. */
  readonly device: string | undefined
}

/** The subject has asked too often. */
interface TooOften {
  readonly is: 'limited'
  readonly waitMs: number
}

/** The own sessions, the newest first. */
type OwnListing = { readonly is: 'listed'; readonly sessions: readonly OwnSession[] } | TooOften

/** The outcome of the attempt to end another session. */
type OwnEnding =
  | { readonly is: 'ended' }
  /** The tag is that of the session that asks. */
  | { readonly is: 'current' }
  /** The subject has no such session. */
  | { readonly is: 'unknown' }
  | TooOften

/** A session whose subject is known. */
export type SubjectsOwn = Pick<Session, 'id' | 'key'> & { readonly subject: string }

interface Reading {
  /** The mark that was there before the reading began. */
  readonly mark: string
  readonly sessions: readonly LiveSession[]
}

/** The sessions of a subject, for the pages of one of them. Neither listing nor ending is use of a session. */
export class OwnSessions {
  readonly #index: SubjectIndex
  readonly #store: StoreData
  readonly #listings: MinuteLimit
  readonly #ends: MinuteLimit
  readonly #readings: LRUCache<string, Reading, string>

  /** @param read the live sessions of a subject, the oldest first */
  constructor(index: SubjectIndex, store: StoreData, read: (subject: string) => Promise<readonly LiveSession[]>) {
    this.#index = index
    this.#store = store
    this.#listings = new MinuteLimit(store, MAX_LISTINGS_PER_MINUTE)
    this.#ends = new MinuteLimit(store, MAX_ENDS_PER_MINUTE)
    this.#readings = new LRUCache<string, Reading, string>({
      maxSize: MAX_HELD,
      sizeCalculation: ({ sessions }) => sessions.length + 1,
      ttl: FRESH_MS,
      fetchMethod: async (subject, _stale, { context: mark }) => ({ mark, sessions: await read(subject) }),
      // A reading that others push out of the cache still counts for the callers that wait for it.
      ignoreFetchAbort: true,
    })
  }

  /** The newest sessions of a subject, as they were a few seconds ago. @throws StoreUnavailable */
  async list({ subject, key }: SubjectsOwn): Promise<OwnListing> {
    const [index = ''] = this.#index.keysOf(subject)
    const [waitMs, mark] = await Promise.all([this.#listings.waitMs(partKey(index, 'listings')), this.#markOf(index)])
    if (waitMs !== undefined) return { is: 'limited', waitMs }
    const known = await this.#readings.forceFetch(subject, { context: mark })
    // A session has been ended since, or the session that asks has begun.
    const isOutdated = known.mark !== mark || !known.sessions.some((each) => each.key === key)
    const { sessions } = isOutdated
      ? await this.#readings.forceFetch(subject, { context: mark, forceRefresh: true })
      : known
    const newest = sessions.slice(-MAX_LISTED).toReversed()
    return {
      is: 'listed',
      sessions: newest.map((each) => {
        const { page, startedAt, lastUsedAt, device } = each
        return { tag: page, startedAt, lastUsedAt, isCurrent: each.key === key, device }
      }),
    }
  }

  /**
   * Ends another session of a subject.
   * @param tag as {@link list} shows it
   * @throws StoreUnavailable
   */
  async end({ subject, id }: SubjectsOwn, tag: string, by: Cause): Promise<OwnEnding> {
    if (tag === pageTag(id)) return { is: 'current' }
    const [own = ''] = this.#index.keysOf(subject)
    const waitMs = await this.#ends.waitMs(partKey(own, 'ends'))
    if (waitMs !== undefined) return { is: 'limited', waitMs }
    const meant = (await this.#index.list(subject)).filter((each) => each.page === tag)
    if (meant.length === 0) return { is: 'unknown' }
    const ended = await this.#index.end(meant, { ...by, subject })
    // After the end: a reading that has begun before does not count from here on, whichever instance has it.
    await Promise.all(
      this.#index.keysOf(subject).map((index) => this.#store.count(partKey(index, 'ended'), 1, REMEMBERED_MS, true)),
    )
    return { is: ended > 0 ? 'ended' : 'unknown' }
  }

  /** Differs from every mark of the last seconds once a session has been ended by {@link end}. */
  async #markOf(index: string): Promise<string> {
    const { value = '', expiresAt = 0 } = (await this.#store.readUntracked(partKey(index, 'ended'))) ?? {}
    return `${value} ${expiresAt}`
  }
}
