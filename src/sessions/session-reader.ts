import { LRUCache } from 'lru-cache'
import { sessionKey } from '../store/keys.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'
import { NearCache } from './near-cache.ts'
import type { SessionCookie } from './session-cookie.ts'
import type { Session, SessionRepository } from './repository.ts'

/** How long idle limits stay where they are after one could not be moved. */
const PAUSE_MS = 1000

/** What a request's cookie leads to. */
export type SessionLookup =
  | { readonly is: 'live'; readonly session: Session }
  | { readonly is: 'none' }
  | { readonly is: 'storeDown'; readonly cause: StoreUnavailable }

const NONE: SessionLookup = { is: 'none' }

/** What a cookie value with a good signature leads to. */
interface Known {
  readonly id: string
  readonly key: string
  /** The limits of the session when it was last used here; 0 before that. */
  endsAt: number
  idleEndsAt: number
}

/** The read-only door to sessions: it can extend one that lives, but neither make nor revive one. */
export class SessionReader {
  readonly #cookie: SessionCookie
  readonly #sessions: SessionRepository
  readonly #near: NearCache
  /** Whether what is held near is good until something else is heard. */
  readonly #tracks: boolean
  /** Cookie values whose signature was found good, so that it is checked once and not per request. */
  readonly #known = new LRUCache<string, Known>({ maxSize: 100_000, sizeCalculation: () => 1 })
  #pausedUntil = 0

  constructor(cookie: SessionCookie, sessions: SessionRepository, store: Store) {
    this.#cookie = cookie
    this.#sessions = sessions
    this.#near = new NearCache(sessions, store)
    this.#tracks = store.staleMs === Infinity
  }

  /** What the near cache did so far, and what it holds. */
  get nearCache(): NearCache['counts'] & NearCache['size'] {
    return { ...this.#near.counts, ...this.#near.size }
  }

  /** The session of a Cookie header. Synchronous when it is held near. Not a use: see {@link use}. */
  read(header: string | undefined): SessionLookup | Promise<SessionLookup> {
    const known = this.#identify(header)
    if (known === undefined) return NONE
    const session = this.#near.peek(known.id, known.key)
    return session === undefined ? this.reload(known.id) : { is: 'live', session }
  }

  /** The same, and counts as use of the session: now and then that moves its idle limit, which nobody waits for. */
  use(header: string | undefined): SessionLookup | Promise<SessionLookup> {
    const known = this.#identify(header)
    if (known === undefined) return NONE
    const session = this.#near.peek(known.id, known.key)
    if (session === undefined) return this.#loadToUse(known)
    this.#used(known, session)
    return { is: 'live', session }
  }

  /** Reads a session by its id, past what is held near. */
  reload(id: string): Promise<SessionLookup> {
    return lookup(this.#near.load(id))
  }

  /**
   * A session that somebody holds, as it is now.
   * @param isUse whether the holding counts as use
   */
  async recheck({ id, key, record }: Session, isUse: boolean): Promise<SessionLookup> {
    const session = this.#tracks ? this.#near.peek(id, key) : undefined
    if (session !== undefined && !(isUse && this.#sessions.isDue(session.idleEndsAt, record.endsAt)))
      return { is: 'live', session }
    return isUse ? lookup(this.#near.touch({ id, key }, record.endsAt)) : this.reload(id)
  }

  async #loadToUse(known: Known): Promise<SessionLookup> {
    // Reading and moving in one step, unless it was moved from here before: then this is about another change.
    const isDue = this.#sessions.isDue(known.idleEndsAt, known.endsAt)
    const found = await (isDue ? lookup(this.#near.touch(known, known.endsAt)) : this.reload(known.id))
    if (found.is === 'live') this.#used(known, found.session)
    return found
  }

  /** Moves the idle limit if that is due. Never waits, never fails. */
  #used(known: Known, { idleEndsAt, record: { endsAt } }: Session): void {
    known.endsAt = endsAt
    known.idleEndsAt = idleEndsAt
    const now = Date.now()
    if (!this.#sessions.isDue(idleEndsAt, endsAt, now) || now < this.#pausedUntil) return
    const pause = (): number => (this.#pausedUntil = now + PAUSE_MS)
    this.#near.touch(known, endsAt).then((moved) => {
      if (moved === undefined) return
      known.idleEndsAt = moved.idleEndsAt
      // Writes are refused at the moment: not to be tried with every request.
      if (this.#sessions.isDue(moved.idleEndsAt, endsAt, now)) pause()
    }, pause)
  }

  #identify(header: string | undefined): Known | undefined {
    const value = this.#cookie.value(header)
    return value === undefined ? undefined : (this.#known.get(value) ?? this.#verify(value))
  }

  #verify(value: string): Known | undefined {
    const id = this.#cookie.verify(value)
    if (id === undefined) return undefined
    const known = { id, key: sessionKey(id), endsAt: 0, idleEndsAt: 0 }
    this.#known.set(value, known)
    return known
  }
}

async function lookup(reading: Promise<Session | undefined>): Promise<SessionLookup> {
  try {
    const session = await reading
    return session === undefined ? NONE : { is: 'live', session }
  } catch (cause) {
    if (cause instanceof StoreUnavailable) return { is: 'storeDown', cause }
    throw cause
  }
}
