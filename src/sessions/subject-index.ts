import { randomBytes } from 'node:crypto'
import type { Changing } from '../config/changing.ts'
import type { Requester } from '../http/requester.ts'
import { subjectKey } from '../store/keys.ts'
import type { EntryState, IndexEntry, IssueMark, SessionIndex } from '../store/session-index.ts'
import { eachOf } from './each-of.ts'
import type { CausedEnd } from './endings.ts'
import type { Envelope } from './envelope.ts'
import type { SessionRepository } from './repository.ts'

/** The entry of a session. */
export interface IndexedSession {
  /** The tag of the session in the log when it began. A roll of secrets changes the tags of later lines. */
  readonly tag: string
  /** Epoch ms. */
  readonly startedAt: number
  /** Client address of the login. */
  readonly client: string
  /** Store key. */
  readonly key: string
  /** The tag by which pages know the session. */
  readonly page: string
  /** The browser and the system of the login, as far as it said. */
  readonly device?: string | undefined
  /** When the ID token of its login was issued (epoch s); absent without OIDC. */
  readonly issuedAt?: number
  /** Whether it knows its session at the provider. */
  readonly hasSid?: boolean
  /** The subject of the session, in an index that is not that of the subject. */
  readonly subject?: string
  /** Where the index of the subject, or that of the session at the provider, has the same session. */
  readonly twin?: Place
}

/** Where the index has a session. */
export interface Place {
  /** Store key of the index of the subject. */
  readonly index: string
  readonly id: string
}

/** A session of the index. */
export interface ListedSession extends IndexedSession {
  readonly place: Place
  /** The absolute limit of the session when it began (epoch ms). */
  readonly endsAt: number
}

/** The reason why sessions end, the request that ends them, and whose they are, unless their entries say it. */
export interface Cause {
  readonly reason: CausedEnd
  readonly requester: Requester
  readonly subject?: string
}

/** Made into a key together with a server secret. An entry has no holder with a secret of its own. */
const PURPOSE = 'index of sessions by subject'

/**
 * The sessions of each subject, or of each session at the provider. Names of keys and entries are made with the first secret and
 * found with all of them, so that an instance sees what instances before and after it in a roll of secrets have written.
 */
export class SubjectIndex {
  readonly #index: SessionIndex
  readonly #envelope: Envelope
  readonly #secrets: Changing<readonly string[]>
  readonly #sessions: SessionRepository
  readonly #keyOf: (subject: string, secret: string) => string

  /** @param keyOf makes the store key of a subject with a secret */
  constructor(
    index: SessionIndex,
    envelope: Envelope,
    secrets: Changing<readonly string[]>,
    sessions: SessionRepository,
    keyOf: (subject: string, secret: string) => string = subjectKey,
  ) {
    this.#keyOf = keyOf
    this.#index = index
    this.#envelope = envelope
    this.#secrets = secrets
    this.#sessions = sessions
  }

  /** Store keys of a subject: the one to which this instance adds, then those to which others may add. */
  keysOf(subject: string): string[] {
    return [...new Set(this.#secrets.current)].map((secret) => this.#keyOf(subject, secret))
  }

  /** A place for another session of a subject. */
  newPlace(subject: string): Place {
    const [index = ''] = this.keysOf(subject)
    return { index, id: randomBytes(9).toString('base64url') }
  }

  /** @returns how many entries there are now @throws StoreUnavailable */
  async add(subject: string, place: Place, session: IndexedSession, expiresAt: number): Promise<number> {
    const { index } = place
    const others = this.keysOf(subject).filter((key) => key !== index)
    const value = this.#envelope.seal(nameOf(place), PURPOSE, JSON.stringify(session))
    // Instances in a roll of secrets add to different keys. Whatever is there already is older, by any clock.
    const older = await this.#entriesOf(others)
    const after = Math.max(0, ...older.map(({ addedAt }) => addedAt))
    const count = await this.#index.add(index, { id: place.id, value, expiresAt }, after)
    // Counted only now: of two logins that add to different keys at the same moment, the later one has to see the other.
    return count + (await this.#entriesOf(others)).length
  }

  /** The sessions of a subject, the oldest first, for all instances alike. Some may have ended, or not begun. @throws StoreUnavailable */
  list(subject: string): Promise<ListedSession[]> {
    return this.#read(subject, (key) => this.#index.list(key))
  }

  /**
   * Ends all sessions of a subject, including sessions whose login is under way.
   * @param exceptKey store key of a session that the caller ends itself
   * @returns how many were live
   * @throws StoreUnavailable when some may be left; the same call then ends them
   */
  async endAll(subject: string, by: Cause, exceptKey?: string): Promise<number> {
    const listed = await this.#read(subject, (key) => this.#index.endAll(key))
    return this.#endNoted(
      subject,
      listed.filter(({ key }) => key !== exceptKey),
      by,
    )
  }

  /** The same for the sessions whose ID token was issued until a time (epoch s): all of them, or those that know no sid. */
  async endIssued(subject: string, mark: IssueMark, until: number, by: Cause): Promise<number> {
    const listed = await this.#read(subject, (key) => this.#index.endIssued(key, mark, until))
    const meant = listed.filter(({ issuedAt = 0, hasSid = false }) => {
      return issuedAt <= until && (mark === 'issued' || !hasSid)
    })
    return this.#endNoted(subject, meant, by)
  }

  /** Ends some sessions of the index. @returns how many were live @throws StoreUnavailable when some may be left */
  async end(sessions: readonly ListedSession[], by: Cause): Promise<number> {
    // Noted first: a login among them that has yet to create its session then sees that it must not live.
    await this.#change(sessions, (key, ids) => this.#index.end(key, ids))
    return this.#endListed(sessions, by)
  }

  /** Removes sessions, from the other index as well. @throws StoreUnavailable */
  async remove(sessions: readonly { readonly place: Place; readonly twin?: Place | undefined }[]): Promise<void> {
    const places = sessions.flatMap(({ place, twin }) =>
      twin === undefined ? { place } : [{ place }, { place: twin }],
    )
    await this.#change(places, (key, ids) => this.#index.remove(key, ids))
  }

  /** @throws StoreUnavailable */
  look({ index, id }: Place): Promise<EntryState> {
    return this.#index.look(index, id)
  }

  /**
   * The note waits for a replica, as the ends of the sessions do: there may be none of them, or none on this server of a Cluster.
   */
  async #endNoted(subject: string, sessions: readonly ListedSession[], by: Cause): Promise<number> {
    const noted = this.keysOf(subject).map((key) => this.#sessions.endings.replicate(key))
    const [ended] = await Promise.all([this.#endListed(sessions, by), ...noted])
    return ended
  }

  async #endListed(sessions: readonly ListedSession[], { reason, requester, subject }: Cause): Promise<number> {
    let ended = 0
    await eachOf(sessions, async ({ key, subject: own = subject }) => {
      if (await this.#sessions.end(key, reason, { requester, subjectTag: this.#sessions.subjectTag(own) })) ended++
    })
    // Removed last: if this process dies before, the next attempt finds the sessions that are left.
    await this.remove(sessions)
    return ended
  }

  async #entriesOf(keys: readonly string[]): Promise<IndexEntry[]> {
    const lists = await Promise.all(keys.map((key) => this.#index.list(key)))
    return lists.flat()
  }

  async #read(subject: string, read: (key: string) => Promise<readonly IndexEntry[]>): Promise<ListedSession[]> {
    const lists = await Promise.all(this.keysOf(subject).map(async (index) => ({ index, entries: await read(index) })))
    return lists
      .flatMap(({ index, entries }) => entries.map((entry) => ({ entry, place: { index, id: entry.id } })))
      .toSorted((one, other) => one.entry.addedAt - other.entry.addedAt || (one.entry.id < other.entry.id ? -1 : 1))
      .flatMap(({ entry, place }) => this.#open(entry, place) ?? [])
  }

  async #change(
    sessions: readonly Pick<ListedSession, 'place'>[],
    change: (key: string, ids: string[]) => Promise<void>,
  ): Promise<void> {
    const byIndex = Map.groupBy(sessions, ({ place }) => place.index)
    await Promise.all(
      [...byIndex].map(([index, listed]) =>
        change(
          index,
          listed.map(({ place }) => place.id),
        ),
      ),
    )
  }

  /** Undefined if no secret of this instance opens it. */
  #open({ value, expiresAt: endsAt }: IndexEntry, place: Place): ListedSession | undefined {
    const text = this.#envelope.open(nameOf(place), PURPOSE, value)
    return text === undefined ? undefined : { ...(JSON.parse(text) as IndexedSession), place, endsAt }
  }
}

/** Binds a sealed entry to its place, so that it cannot be moved to another subject. */
function nameOf({ index, id }: Place): string {
  return `${index}:${id}`
}
