import { setTimeout as delay } from 'node:timers/promises'
import type { Changing } from '../config/changing.ts'
import type { Requester } from '../http/requester.ts'
import { logTag } from '../telemetry/log.ts'
import type { Envelope } from './envelope.ts'
import { besideKey, LEFT_MS, sessionKey } from '../store/keys.ts'
import { PendingWrites } from '../store/pending-writes.ts'
import {
  isOfOneMaster,
  StoreUnavailable,
  wasSent,
  type StoreData,
  type StoredValue,
  type StoreHealth,
} from '../store/store.ts'
import { Endings, type CausedEnd, type EndedBy } from './endings.ts'
import { parseRecord, type Session, type SessionRecord } from './session.ts'
import { storeNow } from '../time/store-time.ts'

/** The idle limit of a session is moved at most this often. */
const MAX_STEP_MS = 60_000
/** How long saving a refreshed token is retried: if it were lost, the session would be lost with it. */
export const SAVE_MS = 5000
const SAVE_AGAIN_MS = 50

/** How long a session lives (ms). */
interface SessionLimits {
  readonly idleMs: number
  readonly maxMs: number
}

/** How sessions are stored, and how they and their subjects are named in the log. */
export interface RepositoryOptions {
  /** The first one keys the hashes. */
  readonly secrets: Changing<readonly string[]>
  /** Whether a subject is named as it is, and not by a hash. */
  readonly logsPlainSubjects: boolean
  /** Whether a session needs an identity: those from before OIDC count as unreadable. */
  readonly needsIdentity?: boolean
}

/** Stores sessions sealed, under the hash of their id. A session that has ended cannot be brought back. */
export class SessionRepository {
  readonly limits: SessionLimits
  readonly endings: Endings
  /** The idle limits move in steps of this length. */
  readonly stepMs: number
  readonly #store: StoreData & StoreHealth
  /** What is to be taken back of logins that have failed. */
  readonly #pending: PendingWrites
  readonly #envelope: Envelope
  readonly #secrets: Changing<readonly string[]>
  readonly #logsPlainSubjects: boolean
  readonly #needsIdentity: boolean

  constructor(store: StoreData & StoreHealth, envelope: Envelope, limits: SessionLimits, options: RepositoryOptions) {
    const { secrets, logsPlainSubjects, needsIdentity = false } = options
    this.#logsPlainSubjects = logsPlainSubjects
    this.#needsIdentity = needsIdentity
    this.#store = store
    this.#pending = new PendingWrites(store)
    this.#envelope = envelope
    this.endings = new Endings(store, (id, key, sealed) => {
      const record = this.#record(id, key, sealed)
      return { record, subjectTag: this.subjectTag(record?.subject) }
    })
    this.limits = limits
    this.stepMs = Math.max(1, Math.min(MAX_STEP_MS, Math.floor(limits.idleMs / 10)))
    this.#secrets = secrets
  }

  /** Identifies a session in the log. The tag reveals neither the id nor the store key. */
  tag(key: string): string {
    return logTag(this.#tagSecret, key)
  }

  /** Identifies a subject in the log: by a keyed hash, or as it is (LOG_SUBJECT). Undefined where there is none. */
  subjectTag<Subject extends string | undefined>(subject: Subject): Subject | string {
    if (subject === undefined || this.#logsPlainSubjects) return subject
    return logTag(this.#tagSecret, `subject:${subject}`)
  }

  get #tagSecret(): string {
    const [secret = ''] = this.#secrets.current
    return secret
  }

  /** Stores a new session. @throws StoreUnavailable; Error if the id exists already, which 256 random bits rule out */
  async create(id: string, record: SessionRecord): Promise<void> {
    const key = sessionKey(id)
    // Not rounded to a step; the first use of the session does that.
    const idleEndsAt = Math.min(record.endsAt, storeNow() + this.limits.idleMs)
    const sealed = this.#seal(key, id, record)
    const created = await this.#store.create(key, sealed, idleEndsAt).catch((error: unknown) => {
      // Perhaps it exists all the same, and nobody gets its cookie.
      if (wasSent(error)) this.#pending.undo(() => this.#store.removeIf(key, sealed), idleEndsAt)
      throw error
    })
    if (!created) throw new Error('a session with this id already exists')
  }

  /**
   * Takes back what a login has written that fails: once the store is back, if it is away. Never rejects.
   * @param undo returns whether there was anything to take back
   */
  async takeBack(undo: () => Promise<boolean>): Promise<void> {
    await undo().catch(() => this.#pending.undo(undo, storeNow() + this.limits.idleMs))
  }

  /** Undefined if there is no such session, or if this instance cannot decrypt it (another one may). */
  async load(id: string): Promise<Session | undefined> {
    const key = sessionKey(id)
    return this.#open(id, key, await this.#store.read(key))
  }

  /**
   * Like {@link load}, but counts as use: the same round trip moves the idle limit, if that is due.
   * @param endsAt the session's absolute limit
   */
  async touch(id: string, endsAt: number): Promise<Session | undefined> {
    const key = sessionKey(id)
    return this.#open(id, key, await this.#store.extend(key, this.#idleEnd(endsAt)))
  }

  /** Whether using a session with these limits now should move its idle limit. */
  isDue(idleEndsAt: number, endsAt: number, now = storeNow()): boolean {
    return idleEndsAt < endsAt && idleEndsAt < now + this.limits.idleMs
  }

  /**
   * Compare-and-set. Undefined if the session was changed or has ended meanwhile; the caller has to read it again. It is no use of the
   * session, so its idle limit stays where it is: an instance may have moved it since it was read here.
   */
  async replace(session: Session, record: SessionRecord): Promise<Session | undefined> {
    const { key, id } = session
    const sealed = this.#seal(key, id, record)
    return (await this.#store.replace(key, session.sealed, sealed)) ? { ...session, record, sealed } : undefined
  }

  /**
   * The same, but retries during a short outage: the old refresh token is used up, and `record` is the only copy of the new one.
   * @throws StoreUnavailable
   */
  async replaceInTime(session: Session, record: SessionRecord): Promise<Session | undefined> {
    const giveUpAt = performance.now() + SAVE_MS
    for (;;) {
      try {
        return await this.replace(session, record)
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || performance.now() >= giveUpAt) throw error
        await delay(SAVE_AGAIN_MS)
      }
    }
  }

  /**
   * Notes whose a session is that is about to end, for whoever has to repeat that. It is written as a lock, since a full store takes
   * locks, too.
   * @throws StoreUnavailable
   */
  async noteSubject({ id, key, record: { subject = '' } }: Session): Promise<void> {
    const note = besideKey(key, 'subject')
    await this.#store.lock(note, this.#envelope.seal(note, id, subject), LEFT_MS)
  }

  /** What {@link noteSubject} has noted within the last minute. @throws StoreUnavailable */
  async notedSubject(id: string): Promise<string | undefined> {
    const note = besideKey(sessionKey(id), 'subject')
    const sealed = await this.#store.readUntracked(note)
    return sealed && this.#envelope.open(note, id, sealed.value)
  }

  /** Ends a session everywhere. Returns whether it still existed. See {@link Endings.end}. @throws StoreUnavailable */
  async end(key: string, reason: CausedEnd, by: EndedBy = {}): Promise<boolean> {
    return (await this.endings.end(key, reason, by, true)).existed
  }

  /**
   * Ends a session that a login replaces. If its master of a Cluster does not serve, it ends once that does, since otherwise its browser
   * could not log in until then.
   * @throws StoreUnavailable
   */
  async endReplaced(key: string, by: EndedBy): Promise<void> {
    const end = (): Promise<boolean> => this.end(key, 'replaced', by)
    await end().catch((error: unknown) => {
      if (!isOfOneMaster(error, this.#store)) throw error
      this.#pending.undo(end, storeNow() + this.limits.idleMs)
    })
  }

  /**
   * Ends a session by its id. Returns its final record, which a refresh may have changed a moment ago, also if the end of the
   * session is not recorded yet; undefined if the session was gone or this instance cannot decrypt it.
   * @param isAuthentic false if the id may be made up
   */
  async endById(
    id: string,
    reason: CausedEnd,
    isAuthentic: boolean,
    requester?: Requester,
  ): Promise<SessionRecord | undefined> {
    return (await this.endings.end(sessionKey(id), reason, { id, requester }, isAuthentic)).record
  }

  #seal(key: string, id: string, record: SessionRecord): string {
    return this.#envelope.seal(key, id, JSON.stringify(record))
  }

  #open(id: string, key: string, stored: StoredValue | undefined): Session | undefined {
    const record = stored && this.#record(id, key, stored.value)
    if (stored === undefined || record === undefined) return undefined
    if (this.#needsIdentity && record.oidc === undefined) return undefined
    const subjectTag = this.subjectTag(record.subject)
    const named = { id, key, tag: this.tag(key), ...(subjectTag !== undefined && { subjectTag }) }
    return { ...named, record, idleEndsAt: stored.expiresAt, sealed: stored.value }
  }

  #record(id: string, key: string, sealed: string): SessionRecord | undefined {
    const opened = this.#envelope.open(key, id, sealed)
    return opened === undefined ? undefined : parseRecord(opened)
  }

  /**
   * The idle limit of a session that is used now, rounded up to a whole number of steps before its absolute limit. All
   * instances compute the same limit during a step, so only the first has to write it. Rounding up logs no user out early,
   * and counting from the absolute limit spreads the writes of different sessions over time.
   */
  #idleEnd(endsAt: number): number {
    const spare = endsAt - (storeNow() + this.limits.idleMs)
    return spare <= 0 ? endsAt : endsAt - Math.floor(spare / this.stepMs) * this.stepMs
  }
}
