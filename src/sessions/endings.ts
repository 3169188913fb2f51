import { randomUUID } from 'node:crypto'
import type { Requester } from '../http/requester.ts'
import { LEFT_MS, besideKey, partKey } from '../store/keys.ts'
import { PendingWrites } from '../store/pending-writes.ts'
import { StoreUnavailable, wasSent, type StoreData, type StoreHealth } from '../store/store.ts'
import { tell } from './each-of.ts'
import { expiryOf, type Session, type SessionRecord } from './session.ts'
import { standstill } from '../time/standstill.ts'
import { storeNow } from '../time/store-time.ts'

/**
 * How much longer than the absolute limit of a session the marker stays that its expiry is recorded. Until then a browser may come
 * back with its cookie to an instance that has not heard of the end.
 */
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

/**
 * Whoever records an end takes no longer, or has stopped: it says so within one command, and the revocation of two tokens takes
 * four seconds at most.
 */
const CLAIM_MS = 6_000

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

/** What an end has left in the store, until all that has to follow is done. */
interface Left {
  readonly reason: string
  /** The record of the session, as it was. */
  readonly sealed: string
  /** Who records the end, if somebody does, and whether all is done but for the revocation. */
  readonly claim?: { readonly name: string; readonly isRecorded: boolean }
}

/**
 * The ends of sessions. Each is recorded (logged, counted) and its tokens revoked once among all instances: by the one that adds
 * a name of its own to what the end has left in the store. That is removed when all is done. An instance that has not heard of an
 * end, since the reply was lost, looks for it when the store is back. Whoever repeats the request at another instance finds it,
 * too, and takes over what an instance has claimed and not done, since it was killed.
 */
export class Endings {
  readonly #store: StoreData & StoreHealth
  /** Records that could not be made. */
  readonly #pending: PendingWrites
  /** The same of sessions that nobody has ended. Any instance that notices makes them, so a server that stops does not wait for these. */
  readonly #pendingLapses: PendingWrites
  readonly #open: (id: string, key: string, sealed: string) => Opened
  readonly #endListeners: ((ending: Ending) => void)[] = []
  readonly #recordListeners: ((ending: Ending) => unknown)[] = []
  readonly #revokers: ((ending: Ending) => Promise<void> | undefined)[] = []
  /** The keys of sessions whose end somebody else is recording, at which this process looks again. */
  readonly #awaited = new Set<string>()
  /** Ends that this process has recorded. Each resolves once the store has heard of it. */
  readonly #unsaid = new Set<Promise<void>>()
  readonly #unreplicatedListeners: ((key: string) => void)[] = []

  /** @param open opens the record of a session that has ended, as far as that is possible */
  constructor(store: StoreData & StoreHealth, open: (id: string, key: string, sealed: string) => Opened) {
    this.#store = store
    this.#pending = new PendingWrites(store)
    this.#pendingLapses = new PendingWrites(store)
    this.#open = open
  }

  /** Calls `listener` for every end of a session that this process causes or finds. */
  onEnd(listener: (ending: Ending) => void): void {
    this.#endListeners.push(listener)
  }

  /**
   * Calls `listener` for every end of a session that this process is the one to record. A promise that it returns resolves,
   * and never rejects, once the record would outlive this process.
   */
  onRecord(listener: (ending: Ending) => unknown): void {
    this.#recordListeners.push(listener)
  }

  /** Has `revoke` revoke the tokens of every end that {@link onRecord} is told. It resolves, never rejects, once that is done. */
  onRevoke(revoke: (ending: Ending) => Promise<void> | undefined): void {
    this.#revokers.push(revoke)
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
    let text: string | undefined
    try {
      text = await this.#store.bury(key, tombstone)
    } catch (error) {
      const look = async (): Promise<void> => {
        const found = await this.#left(key)
        if (found !== undefined) await this.#record(found, this.#endingIn(found, key, reason, by), name)
      }
      // One look for all requests like this: a browser that repeats its own must not take the places of others.
      if (wasSent(error)) this.#later(error, look, { name: `${reason} ${key}` })
      throw error
    }
    const left = leftIn(text)
    const ending = left === undefined ? { ...by, key, reason } : this.#endingIn(left, key, reason, by)
    tell(this.#endListeners, ending)
    if (left === undefined) return { existed: false }
    const { record } = ending
    try {
      return { existed: await this.#record(left, ending, name), record }
    } catch (error) {
      // It has ended. If the store does not say for long whether somebody else records that, this process does.
      this.#later(error, () => this.#record(left, ending, name), { onDropped: () => this.#tellRecorded(ending, false) })
      return { existed: true, record }
    }
  }

  /**
   * Resolves once this process has looked for the ends of which it has not heard, which may be recorded by nobody else, and once the
   * store knows of all that it has recorded: another one would record them again. Never rejects.
   */
  async close(): Promise<void> {
    await this.#pending.written()
    await Promise.all(this.#unsaid)
  }

  /**
   * Why a session that is missing in the store has ended, as far as known: one of its limits may have passed only after somebody
   * ended it. Never rejects.
   */
  async reasonOf(session: Session): Promise<EndReason> {
    const expiry = expiryOf(session)
    const tombstone = await this.#store.readUntracked(besideKey(session.key, 'tombstone')).catch(() => undefined)
    return causedEnd(tombstone?.value) ?? expiry ?? 'gone'
  }

  /**
   * Call this when a session that was read earlier is missing in the store, or has changed. If one of its limits has passed, and
   * nobody has moved or ended it before, its end is recorded, once among all instances that notice. Never rejects.
   */
  async recordExpiry(session: Session): Promise<void> {
    if (expiryOf(session) === undefined) return
    const { key, subjectTag, record: limits, idleEndsAt } = session
    const name = randomUUID()
    const record = async (): Promise<void> => {
      const [held, tombstone] = await Promise.all(
        [key, besideKey(key, 'tombstone')].map((each) => this.#store.readUntracked(each)),
      )
      const isHeld = held !== undefined && storeNow() < held.expiresAt
      const reason = expiryOf({ record: limits, idleEndsAt: held?.expiresAt ?? idleEndsAt })
      if (isHeld || tombstone !== undefined || reason === undefined) return
      const ttlMs = Math.max(0, limits.endsAt - storeNow()) + EXPIRY_MARKER_MS
      if (!(await this.#store.lock(partKey(key, 'lapsed'), name, ttlMs))) return
      for (const listeners of [this.#endListeners, this.#recordListeners]) tell(listeners, { key, reason, subjectTag })
    }
    await record().catch((error: unknown) => this.#later(error, record, { pending: this.#pendingLapses }))
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
    await record().catch((error: unknown) => this.#later(error, record, { pending: this.#pendingLapses }))
  }

  /** Records an end unless somebody else does. Returns whether this process has recorded it. @throws StoreUnavailable */
  async #record(left: Left, ending: Ending, name: string): Promise<boolean> {
    // Its own claim is there after a lost reply.
    if (left.claim === undefined || left.claim.name === name) return this.#claim(left, ending, name)
    this.#awaitClaim(left.claim.name, ending)
    return false
  }

  /** Looks again once whoever has claimed an end should be done with it, and takes over what was not done. */
  #awaitClaim(name: string, ending: Ending): void {
    const { key } = ending
    if (this.#awaited.has(key)) return
    this.#awaited.add(key)
    const ownName = randomUUID()
    const takeOver = async (): Promise<void> => {
      const left = await this.#left(key)
      if (left?.claim?.name !== name) return
      // While the store is away, and just after, whoever is done with it has not been able to say so.
      if (this.#store.availableForMs(besideKey(key, 'left')) < CLAIM_MS) return this.#awaitClaim(name, ending)
      await this.#claim(left, ending, ownName)
    }
    setTimeout(() => {
      this.#awaited.delete(key)
      void takeOver().catch((error: unknown) => this.#later(error, takeOver))
    }, CLAIM_MS).unref()
  }

  /** Does what has to follow an end, if that is still left as it was. Returns whether it was. @throws StoreUnavailable */
  async #claim(left: Left, ending: Ending, name: string): Promise<boolean> {
    const isRecorded = left.claim?.isRecorded ?? false
    const claimed: Left = { ...left, claim: { name, isRecorded } }
    let from: number
    do {
      from = standstill.now()
      if (!(await this.#replace(ending, left, claimed))) return false
      // Whoever hears so late may have been taken for stopped, and asks whether the claim is still its own.
    } while (standstill.now() - from > CLAIM_MS)
    this.#tellRecorded(ending, isRecorded, claimed)
    return true
  }

  /** @param claimed what is left, unless the store has been away for so long that nothing is */
  #tellRecorded(ending: Ending, isRecorded: boolean, claimed?: Left): void {
    const recordings = isRecorded ? [] : this.#recordListeners.map((record) => record(ending))
    const revocations = this.#revokers.map((revoke) => revoke(ending)).filter((revocation) => revocation !== undefined)
    if (claimed?.claim === undefined) return
    const recorded: Left = { ...claimed, claim: { ...claimed.claim, isRecorded: true } }
    const said = Promise.withResolvers<void>()
    this.#unsaid.add(said.promise)
    const settle = (): void => {
      this.#unsaid.delete(said.promise)
      said.resolve()
    }
    const finish = async (): Promise<void> => {
      await Promise.all(recordings)
      if (revocations.length > 0) await this.#replace(ending, claimed, recorded)
      await Promise.all(revocations)
      const done = revocations.length > 0 ? recorded : claimed
      await this.#store.removeIf(besideKey(ending.key, 'left'), textOf(done))
      settle()
    }
    void finish().catch((error: unknown) => this.#later(error, finish, { onDropped: settle }))
  }

  #replace({ key }: Ending, left: Left, by: Left): Promise<boolean> {
    return this.#store.replace(besideKey(key, 'left'), textOf(left), textOf(by), storeNow() + LEFT_MS)
  }

  async #left(key: string): Promise<Left | undefined> {
    return leftIn((await this.#store.readUntracked(besideKey(key, 'left')))?.value)
  }

  /**
   * Tries again once the store is back.
   * @param name a later try of the same name takes the place of this one
   * @param onDropped is called if the store stays away
   */
  #later(
    error: unknown,
    record: () => Promise<unknown>,
    {
      name,
      onDropped = () => undefined,
      pending = this.#pending,
    }: { readonly name?: string; readonly onDropped?: () => void; readonly pending?: PendingWrites } = {},
  ): void {
    if (!(error instanceof StoreUnavailable)) throw error
    const write = async (): Promise<void> => void (await record())
    if (!pending.add({ write, bytes: 0, until: storeNow() + LEFT_MS, onDropped, name })) onDropped()
  }

  /** The end of which this is left. */
  #endingIn({ reason: word, sealed }: Left, key: string, asked: CausedEnd, { id, ...by }: EndedBy): Ending {
    const reason = causedEnd(word) ?? 'gone'
    // A request that finds another end than its own has not caused it.
    const { requester, ...whose } = by
    const opened = id === undefined ? {} : this.#open(id, key, sealed)
    return { key, reason, ...(reason === asked && { requester }), ...opened, ...whose }
  }
}

/** Reads what BURY or {@link textOf} has written. An instance of version 0.3 leaves nothing but its name. */
function leftIn(text: string | undefined): Left | undefined {
  if (text === undefined) return undefined
  const [reason = '', sealed] = text.split(' ')
  if (sealed !== undefined) return { reason, sealed }
  const [name = '', stage, word = '', record] = text.split(',')
  if (record === undefined) return undefined
  return { reason: word, sealed: record, claim: { name, isRecorded: stage === 'recorded' } }
}

/** A claim has no space, without which an instance of version 0.3 takes it for the name of whoever records the end. */
function textOf({ reason, sealed, claim }: Left): string {
  if (claim === undefined) return `${reason} ${sealed}`
  return [claim.name, claim.isRecorded ? 'recorded' : 'claimed', reason, sealed].join(',')
}

function causedEnd(word: string | undefined): CausedEnd | undefined {
  return CAUSED_ENDS.find((reason) => reason === word)
}
