import { parsedObject } from '../http/parsed-object.ts'
import { REFRESHES_KEY, besideKey } from '../store/keys.ts'
import { SharedState } from '../store/shared-state.ts'
import type { Store } from '../store/store.ts'
import { untraced } from '../telemetry/traces/span.ts'
import { standstill } from '../time/standstill.ts'
import {
  areFinal,
  areManyRefused,
  FORGET_MS,
  hasGrantedOthers,
  LOGIN,
  limitedOnce,
  NO_NEWS,
  noteGrant,
  noteRefused,
  pruned,
  refusedOnce,
  RETRY_REFUSED_MS,
  type ProviderNews,
  type Refusals,
} from './refusals.ts'
import { storeNow } from '../time/store-time.ts'

/** A session whose refresh was refused. The names reveal no user, and are the same on every instance. */
export interface RefusedUser {
  readonly key: string
  /** Tells the tokens of the session from those that it had before. */
  readonly tokens: string
  readonly name: string
  /** The name by which the user counts among those who are refused. */
  readonly source: string
  /** When the access token of the session has expired, or will (epoch ms, by the clock of this process). */
  readonly tokenExpiresAt: number
}

/** The consequences of a refusal. */
interface Consequence {
  readonly ends: boolean
  /** The provider may be refusing everybody. */
  readonly isTrouble: boolean
}

/** Grants are told to the other instances together, this long after the first of them. */
const TELL_MS = 500
/** No session pauses for longer at a time. */
const MAX_PAUSE_MS = 60_000

/**
 * The refusals of refreshes, which all instances share: beside each session what concerns it, and in one place what the provider
 * has said to others. Nothing is read or written for a session that was not refused, except that grants are told about twice a second.
 */
export class SharedRefusals {
  readonly #store: Store
  readonly #news: SharedState<ProviderNews>
  /** The latest grants that are still to be told, the newest last. */
  readonly #grants = new Map<string, number>()

  constructor(store: Store) {
    this.#store = store
    const form = {
      nothing: NO_NEWS,
      parse: (text: string, now: number) => pruned({ ...NO_NEWS, ...parsedObject(text) }, now),
      format: (news: ProviderNews) => JSON.stringify(news),
      ttlMs: FORGET_MS,
    }
    this.#news = new SharedState(form, () => undefined, {
      read: async () => {
        const { value = '', now } = await store.readMarked(REFRESHES_KEY, '')
        return { version: value, text: value, now }
      },
      write: async (before, text, ttlMs) => {
        return (await this.#put(REFRESHES_KEY, before || undefined, text, storeNow() + ttlMs)) ? text : undefined
      },
      close: () => undefined,
    })
  }

  /** The stored record of a session; undefined for one that was not refused. @throws StoreUnavailable */
  async read(key: string): Promise<string | undefined> {
    const [text] = await this.#store.readMany([besideKey(key, 'refusal')])
    return text
  }

  /**
   * How long the next refresh of a session with this record must wait (ms). Once after its token has expired, a refused session
   * is tried at once: only a refusal then ends it. @throws StoreUnavailable
   */
  async leftMs(text: string, user: RefusedUser): Promise<number> {
    const refusals = recordOf(text, user)
    if (refusals === undefined) return 0
    const { now } = await this.#store.readMarked(REFRESHES_KEY, '')
    const { next, last } = refusals
    const expiredAt = now - (storeNow() - user.tokenExpiresAt)
    if (expiredAt <= now && last < expiredAt && next === last + RETRY_REFUSED_MS) return 0
    // At most: the clock of another master may be behind.
    return next > now ? Math.min(next - now, MAX_PAUSE_MS) : 0
  }

  /** The provider has refused a refresh. @param text the record before @throws StoreUnavailable */
  async refused(user: RefusedUser, code: string, text: string | undefined): Promise<Consequence> {
    const {
      state: news,
      now,
      cause,
    } = await this.#news.change((known, at) => {
      // Also the grants that this process has yet to tell.
      return noteRefused(noteGrants(known, this.#grants, at), code, user.source, at)
    })
    if (cause !== undefined) throw cause
    const after = refusedOnce(recordOf(text, user), code, now)
    await this.#write(user, text, after, now)
    const isProven = hasGrantedOthers(news, user.name, after.first)
    const hasExpired = storeNow() >= user.tokenExpiresAt
    return {
      ends: isProven && hasExpired && areFinal(after),
      isTrouble: !isProven && areManyRefused(news, code),
    }
  }

  /** The provider has answered a refresh with 429. @param text the record before @throws StoreUnavailable */
  async limited(user: RefusedUser, waitMs: number, text: string | undefined): Promise<void> {
    const { now } = await this.#store.readMarked(REFRESHES_KEY, '')
    await this.#write(user, text, limitedOnce(recordOf(text, user), now, waitMs), now)
  }

  /** Forgets a session, because its refresh was granted. @throws StoreUnavailable */
  async forget(key: string): Promise<void> {
    await this.#store.remove(besideKey(key, 'refusal'))
  }

  /**
   * The provider has granted a user, or a login, what was asked for then, by {@link standstill}. Tells the other instances in
   * the background.
   */
  granted(askedAt: number, name: string = LOGIN): void {
    if (this.#grants.size === 0) untraced(() => setTimeout(() => void this.#tell(), TELL_MS).unref())
    this.#grants.delete(name)
    this.#grants.set(name, askedAt)
    // The two last users are enough to find one who is not the refused one.
    const [oldest] = this.#grants.size > 2 ? this.#grants.keys() : []
    if (oldest !== undefined) this.#grants.delete(oldest)
  }

  /** Never rejects: while the store is away, a grant is not known elsewhere, and the next one will be. */
  async #tell(): Promise<void> {
    const grants = new Map(this.#grants)
    this.#grants.clear()
    await this.#news.change((news, now) => noteGrants(news, grants, now))
  }

  async #write(user: RefusedUser, before: string | undefined, after: Refusals, now: number): Promise<void> {
    const text = JSON.stringify({ ...after, tokens: user.tokens })
    await this.#put(besideKey(user.key, 'refusal'), before, text, (after.first || now) + FORGET_MS)
  }

  /** Compare-and-set. Succeeds even when the store is full. */
  #put(key: string, before: string | undefined, after: string, expiresAt: number): Promise<boolean> {
    return before === undefined
      ? this.#store.lock(key, after, FORGET_MS)
      : this.#store.replace(key, before, after, expiresAt)
  }
}

/** The refusals of the tokens that a session has now. A grant of version 0.3 does not remove those of its tokens before. */
function recordOf(text: string | undefined, { tokens }: RefusedUser): Refusals | undefined {
  const record = parsedObject(text ?? '') as (Refusals & { readonly tokens?: string }) | undefined
  return record?.tokens === tokens ? record : undefined
}

/** @param grants when each user asked for what it was granted, by {@link standstill} */
function noteGrants(news: ProviderNews, grants: ReadonlyMap<string, number>, now: number): ProviderNews {
  const asked = [...grants].map(([name, at]) => [name, Math.floor(now - (standstill.now() - at))] as const)
  return asked.reduce((known, [name, askedAt]) => noteGrant(known, name, askedAt), news)
}
