import { randomUUID } from 'node:crypto'
import type { Requester } from '../http/requester.ts'
import { LEFT_MS, besideKey, partKey } from '../store/keys.ts'
import { PendingWrites } from '../store/pending-writes.ts'
import { StoreUnavailable, type StoreData, type StoreHealth } from '../store/store.ts'
import { expiryOf, type Session, type SessionRecord } from './session.ts'
import { standstill } from '../time/standstill.ts'
import { storeNow } from '../time/store-time.ts'

/** All instances that notice the end of a session do so within this time. */
const EXPIRY_MARKER_MS = 60_000
/**
 * Longer than any process uses a session without having read it again, and longer than {@link SEEN_MS}, after which no process
 * takes a missing session for lost.
 */
const TOMBSTONE_MS = 900_000
/**
 * A missing session counts as lost only if it was seen live within this time. Had somebody ended it, its tombstone would still be
 * there, even if the session was seen in a near cache two minutes after its end, and its loss is recorded a minute late.
 */
const SEEN_MS = TOMBSTONE_MS - 180_000

/** The reasons for which the server itself ends a session, leaving a tombstone. */
const CAUSED_ENDS = ['logout', 'replaced', 'refused', 'revoked'] as const

/** One of {@link CAUSED_ENDS}. */
export type CausedEnd = (typeof CAUSED_ENDS)[number]

/**
 * Why a session ended. `expired`: at its absolute limit; `idle`: at its idle limit; `gone`: for an unknown reason, or because
 * the store has lost it.
 */
export type EndReason = CausedEnd | 'expired' | 'idle' | 'gone'

/** The request that ended a session, and the subject of the session, as far as known. */
export interface EndedBy {
  /** Whose request ended the session; absent if no request did. */
  readonly requester?: Requester | undefined
  /** Identifies the subject of the session in the log. */
  readonly subjectTag?: string | undefined
  /** The id of the session, without which its record cannot be opened. */
  readonly id?: string | undefined
}

/** The end of a session that this process causes or finds. */
export interface Ending extends Omit<EndedBy, 'id'> {
  readonly key: string
  readonly reason: EndReason
  /** Its final record, which a refresh may have changed a moment ago; undefined where it cannot be opened. */
  readonly record?: SessionRecord | undefined
}

/** What a process remembers of a session that it has seen live. */
export interface SeenSession extends Pick<Ending, 'key' | 'subjectTag'> {
  /** Its limits, as they were then (epoch ms). */
  readonly endsAt: number
  readonly idleEndsAt: number
  /** When that was (ms of the clock of {@link standstill}); -Infinity for never. */
  readonly seenAt: number
}

/** The outcome of {@link Endings.end}. */
interface Ended {
  /** False if there was no session to end, or its end is recorded already. */
  readonly existed: boolean
  readonly record?: SessionRecord | undefined
}

type Opened = Pick<Ending, 'record' | 'subjectTag'>

/**
 * The ends of sessions. Each is recorded (logged, counted, its tokens revoked) once among all instances: by the one that puts a
 * name of its own in the place of what the end has left in the store. An instance that has not heard of an end, since the reply
 * was lost, looks for it when the store is back, and whoever repeats the request at another instance finds it, too.
 */
export class Endings {
  readonly #store: StoreData
  /** Records that could not be made. */
  readonly #pending: PendingWrites
  readonly #open: (id: string, key: string, sealed: string) => Opened
  readonly #endListeners: ((ending: Ending) => void)[] = []
  readonly #recordListeners: ((ending: Ending) => void)[] = []
  readonly #unreplicatedListeners: ((key: string) => void)[] = []

  /** @param open opens the record of a session that has ended, as far as that is possible */
  constructor(store: StoreData & StoreHealth, open: (id: string, key: string, sealed: string) => Opened) {
    this.#store = store
    this.#pending = new PendingWrites(store)
    this.#open = open
  }

  /** Calls `listener` for every end of a session that this process causes or finds. */
  onEnd(listener: (ending: Ending) => void): void {
    this.#endListeners.push(listener)
  }

  /** Calls `listener` for every end of a session that this process is the one to record. */
  onRecord(listener: (ending: Ending) => void): void {
    this.#recordListeners.push(listener)
  }

  /** Calls `listener` with the store key of every end that no replica has confirmed: a failover right now could undo it. */
  onUnreplicated(listener: (key: string) => void): void {
    this.#unreplicatedListeners.push(listener)
  }

  /**
   * Ends a session everywhere, or finds its end if nobody has recorded that. If Redis has replicas, this waits briefly until one
   * has confirmed, so that a failover does not bring the session back.
   * @param isAuthentic false if the key may be made up; if there then is no session, this does not wait for a replica
   * @throws StoreUnavailable, after which the session may have ended, and its end is recorded later
   */
  async end(key: string, reason: CausedEnd, by: EndedBy, isAuthentic: boolean): Promise<Ended> {
    const ended = await this.#bury(key, reason, by)
    // Even if the session was gone already: the process that ended it may not have waited for a replica.
    if (isAuthentic || ended.existed) await this.replicate(key)
    return ended
  }

  /** Waits briefly for a replica to have an end that was written at a key, and reports it if none has. Never rejects. */
  async replicate(key: string): Promise<void> {
    if ((await this.#store.isReplicated(key)) === false) tell(this.#unreplicatedListeners, key)
  }

  async #bury(key: string, reason: CausedEnd, by: EndedBy): Promise<Ended> {
    const name = randomUUID()
    const expiresAt = storeNow() + TOMBSTONE_MS
    const tombstone = { key: besideKey(key, 'tombstone'), leftKey: besideKey(key, 'left'), value: reason, expiresAt }
    let left: string | undefined
    try {
      left = await this.#store.bury(key, tombstone)
    } catch (error) {
      this.#later(error, async () => {
        const stored = await this.#store.readUntracked(besideKey(key, 'left'))
        await this.#record(stored?.value, this.#endingIn(stored?.value, key, reason, by), name)
      })
      throw error
    }
    const ending = this.#endingIn(left, key, reason, by)
    tell(this.#endListeners, ending ?? { ...by, key, reason })
    if (ending === undefined) return { existed: false }
    const { record } = ending
    try {
      return { existed: await this.#record(left, ending, name), record }
    } catch (error) {
      // It has ended. If the store does not say for long whether somebody else records that, this process does.
      this.#later(error, () => this.#record(left, ending, name), ending)
      return { existed: true, record }
    }
  }

  /** Why a session that is missing in the store has ended, as far as known. @throws StoreUnavailable */
  async reasonOf(session: Session): Promise<EndReason> {
    const expiry = expiryOf(session)
    if (expiry !== undefined) return expiry
    const tombstone = await this.#store.readUntracked(besideKey(session.key, 'tombstone'))
    return causedEnd(tombstone?.value) ?? 'gone'
  }

  /**
   * Call this when a session that was read earlier is missing in the store. If one of its limits has passed, its end is
   * recorded, once among all instances that notice. Never rejects.
   */
  async recordExpiry(session: Session): Promise<void> {
    const reason = expiryOf(session)
    if (reason === undefined) return
    const { key, subjectTag } = session
    const name = randomUUID()
    const record = async (): Promise<void> => {
      if (!(await this.#store.lock(partKey(key, 'lapsed'), name, EXPIRY_MARKER_MS))) return
      for (const listeners of [this.#endListeners, this.#recordListeners]) tell(listeners, { key, reason, subjectTag })
    }
    await record().catch((error: unknown) => this.#later(error, record))
  }

  /**
   * Call this when a session that was seen live is missing. If it has reached none of its limits, and nobody has ended it, the
   * store has lost it. That is recorded, once among all instances that notice. Never rejects.
   */
  async recordLoss({ key, subjectTag, endsAt, idleEndsAt, seenAt }: SeenSession): Promise<void> {
    if (standstill.now() - seenAt > SEEN_MS || expiryOf({ idleEndsAt, record: { endsAt } }) !== undefined) return
    const name = randomUUID()
    const record = async (): Promise<void> => {
      // It is there if this process merely cannot open it.
      const left = await this.#store.readMany([key, besideKey(key, 'tombstone')])
      if (left.some((value) => value !== undefined)) return
      if (!(await this.#store.lock(partKey(key, 'lapsed'), name, TOMBSTONE_MS))) return
      tell(this.#recordListeners, { key, reason: 'gone', subjectTag })
    }
    await record().catch((error: unknown) => this.#later(error, record))
  }

  /** Records an end unless somebody else does. Returns whether this process has recorded it. @throws StoreUnavailable */
  async #record(left: string | undefined, ending: Ending | undefined, name: string): Promise<boolean> {
    if (left === undefined || ending === undefined) return false
    const key = besideKey(ending.key, 'left')
    if (!(await this.#store.replace(key, left, name, storeNow() + LEFT_MS))) return false
    tell(this.#recordListeners, ending)
    // The name was for this process alone, in case that it would not have heard the reply.
    void this.#store.removeIf(key, name).catch(() => undefined)
    return true
  }

  /** Tries again once the store is back. @param certain an end that is recorded even if the store stays away */
  #later(error: unknown, record: () => Promise<unknown>, certain?: Ending): void {
    if (!(error instanceof StoreUnavailable)) throw error
    const onDropped = (): void => certain && tell(this.#recordListeners, certain)
    const write = async (): Promise<void> => void (await record())
    if (!this.#pending.add({ write, bytes: 0, until: storeNow() + LEFT_MS, onDropped })) onDropped()
  }

  /** The end of which this is left. Undefined if nothing is, or only the name of whoever has recorded it. */
  #endingIn(left: string | undefined, key: string, asked: CausedEnd, { id, ...by }: EndedBy): Ending | undefined {
    const [word, sealed] = left?.split(' ') ?? []
    if (sealed === undefined) return undefined
    const reason = causedEnd(word) ?? 'gone'
    // A request that finds another end than its own has not caused it.
    const { requester, ...whose } = by
    const opened = id === undefined ? {} : this.#open(id, key, sealed)
    return { key, reason, ...(reason === asked && { requester }), ...opened, ...whose }
  }
}

function causedEnd(word: string | undefined): CausedEnd | undefined {
  return CAUSED_ENDS.find((reason) => reason === word)
}

function tell<News>(listeners: readonly ((news: News) => void)[], news: News): void {
  for (const listener of listeners) listener(news)
}
