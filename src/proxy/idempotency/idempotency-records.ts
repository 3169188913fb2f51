import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Config } from '../../config/config.ts'
import type { Envelope, Session } from '../../sessions/index.ts'
import { idempotencyKey } from '../../store/keys.ts'
import {
  StoreUnavailable,
  wasSent,
  type ConfirmableWrites,
  type StoreData,
  type StoreHealth,
} from '../../store/store.ts'
import { standstill } from '../../time/standstill.ts'
import { within } from '../../time/within.ts'
import { Claim, type OwnRecord, type RecordDependencies } from './claim.ts'
import { KeyUsage } from './key-usage.ts'
import { PendingWrites } from '../../store/pending-writes.ts'
import type { CallRecord, KeptAnswer } from './record.ts'
import { SealedRecords } from './sealed-records.ts'
import { storeNow } from '../../time/store-time.ts'

/** The result of claiming a key for a call. All but `claimed` are answered, and nothing is sent. */
export type Claimed =
  /** The call is new. The caller must send it, or free the claim. */
  | { readonly is: 'claimed'; readonly claim: Claim }
  | { readonly is: 'answered'; readonly answer: KeptAnswer }
  | { readonly is: 'running' }
  | { readonly is: 'unknown' }
  | { readonly is: 'not_kept'; readonly status: number }
  /** The key belongs to a different call. */
  | { readonly is: 'otherCall' }
  /** The session has used too many keys. */
  | { readonly is: 'tooMany' }

/** What a call is answered with that is not sent. */
export type Repetition = Exclude<Claimed, { is: 'claimed' }>

/** Times that only tests change. */
interface RecordTimes {
  /** Without a renewal for this long, a call counts as lost. */
  readonly leaseMs: number
  /** By how much the clocks of the instances and of the store may differ. */
  readonly clockSkewMs: number
  /** How long after an interruption of the store the holders may need to write their records. */
  readonly settleMs: number
}

/** An instance may reconnect three seconds after another, and it renews its leases every five. */
const TIMES: RecordTimes = { leaseMs: 15_000, clockSkewMs: 5000, settleMs: 8000 }
/** Records that cannot be opened. One beyond this limit counts as seen for the first time when it is found again. */
const MAX_UNREADABLE = 1000
/** How often a record may appear and disappear before the call is said to be running. */
const MAX_TRIES = 5
/** At shutdown, calls whose browsers have left get this long to finish, and then their records. */
const CLOSE_GRACE_MS = 5000

/**
 * The records of calls with an Idempotency-Key, one for each session and key, in the store. A record is sealed
 * like its session, so only that session can read it.
 */
export class IdempotencyRecords {
  readonly limits: Config['idempotency']
  readonly #deps: RecordDependencies
  readonly #times: RecordTimes
  /** The calls that this process is sending. */
  readonly #running = new Set<Promise<void>>()
  /** What each record that this instance cannot open was last (a hash, since a record may be large), and since when (monotonic ms). */
  readonly #unreadable = new LRUCache<string, { readonly print: string; readonly foundAt: number }>({
    max: MAX_UNREADABLE,
  })

  /** @param confirmed for what must outlive a failover; the store itself where no replica needs to confirm */
  constructor(
    store: StoreData & StoreHealth,
    envelope: Envelope,
    config: Config['idempotency'],
    times = TIMES,
    confirmed: ConfirmableWrites = store,
  ) {
    const usage = new KeyUsage(store, config)
    const sealed = new SealedRecords(envelope, config.isCompact)
    this.#deps = { store, confirmed, sealed, usage, pending: new PendingWrites(store), leaseMs: times.leaseMs }
    this.limits = config
    this.#times = times
  }

  /**
   * Claims a key for a call, or tells the record of the call that has it.
   * @param digest identifies the call
   * @throws StoreUnavailable; then nothing may be sent, and a record that may exist is removed later
   */
  async claim(session: Session, key: string, digest: string): Promise<Claimed> {
    const { sealed, leaseMs } = this.#deps
    const place = { recordKey: idempotencyKey(session.id, key), sessionId: session.id }
    // The record must not end before the session, not even by the store's clock: the key would count as new.
    const expiresAt = Math.min(storeNow() + this.limits.ttlMs, session.record.endsAt + this.#times.clockSkewMs)
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const [leaseUntil, leasedAt] = [storeNow() + leaseMs, standstill.now()]
      const text = sealed.seal(place, { is: 'running', digest, leaseUntil })
      const own = { ...place, session, digest, text, leaseUntil, leasedAt, expiresAt }
      const claimed = (await this.#claimNew(own)) ?? (await this.find(own))
      if (claimed !== undefined) return claimed
    }
    return { is: 'running' }
  }

  /** Has the shutdown wait for a call. */
  async track(call: Promise<void>): Promise<void> {
    const tracked = call.finally(() => this.#running.delete(tracked))
    this.#running.add(tracked)
    return tracked
  }

  /** Waits for the calls that are running, and tries once more to write the records that could not be written yet. */
  async close(): Promise<void> {
    await within(CLOSE_GRACE_MS, Promise.allSettled(this.#running))
    await within(CLOSE_GRACE_MS, this.#deps.pending.close())
  }

  /**
   * Creates a record, and counts it at the same moment, which saves a round trip. Undefined if there is a record already.
   * @throws StoreUnavailable
   */
  async #claimNew(own: OwnRecord): Promise<Claimed | undefined> {
    const { confirmed, store, usage } = this.#deps
    const { recordKey, text, expiresAt, session } = own
    const counting = usage.addRecord(session)
    // A count that stays too high only costs the session a key.
    const uncount = (): Promise<unknown> => counting.then(() => usage.removeRecord(session)).catch(() => undefined)
    const creating = confirmed.create(recordKey, text, expiresAt)
    try {
      const [isCreated, used] = await Promise.all([creating, counting])
      if (isCreated && !usage.isExhausted(used)) return { is: 'claimed', claim: new Claim(this.#deps, own, used) }
      if (isCreated) await store.removeIf(recordKey, text)
      void uncount()
      return isCreated ? { is: 'tooMany' } : undefined
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        void creating.catch(wasSent).then((mayExist) => mayExist && this.#removeLater(own))
        void uncount()
      }
      throw error
    }
  }

  /** The present record of a call, which may be another's. Undefined if there is none. @throws StoreUnavailable */
  async find(own: OwnRecord): Promise<Repetition | undefined> {
    const { store, sealed } = this.#deps
    const stored = await store.readUntracked(own.recordKey)
    if (stored === undefined) return undefined
    const record = sealed.open(own, stored.value)
    if (record === undefined) return this.#unreadableIs(own.recordKey, stored.value)
    if (!own.digest.startsWith(record.digest)) return { is: 'otherCall' }
    switch (record.is) {
      case 'running':
        return this.#isLost(own, record) ? this.#markLost(own, stored.value) : { is: 'running' }
      case 'answered': {
        const { status, headers, body } = record
        return { is: 'answered', answer: { status, headers, body } }
      }
      case 'not_kept':
        return { is: 'not_kept', status: record.status }
      case 'unknown':
        return { is: 'unknown' }
    }
  }

  /** While the store was away, no holder could renew its lease or write how its call ended. So each gets the time for that. */
  #isLost({ recordKey }: OwnRecord, { leaseUntil }: Extract<CallRecord, { is: 'running' }>): boolean {
    const { clockSkewMs, settleMs } = this.#times
    return storeNow() > leaseUntil + clockSkewMs && this.#deps.store.availableForMs(recordKey) >= settleMs
  }

  /**
   * What a record tells under a secret that this instance has not got. While its call may run, its holder renews it: only one that has
   * stayed as it is for longer than a lease has an outcome, which this instance cannot know.
   */
  #unreadableIs(recordKey: string, text: string): Repetition {
    const known = this.#unreadable.get(recordKey)
    const print = hash('sha256', text)
    const foundAt = known?.print === print ? known.foundAt : performance.now()
    this.#unreadable.set(recordKey, { print, foundAt })
    const { clockSkewMs, settleMs } = this.#times
    const isOver = performance.now() - foundAt > this.#deps.leaseMs + clockSkewMs
    return { is: isOver && this.#deps.store.availableForMs(recordKey) >= settleMs ? 'unknown' : 'running' }
  }

  /**
   * Writes that the outcome is unknown before a repeated call is told so. Otherwise the holder could still free the key, and a
   * call that its page believes lost would be sent. Undefined if the record has just changed.
   */
  async #markLost(own: OwnRecord, found: string): Promise<Repetition | undefined> {
    const { confirmed, sealed } = this.#deps
    const text = sealed.seal(own, { is: 'unknown', digest: own.digest })
    return (await confirmed.replace(own.recordKey, found, text, own.expiresAt)) ? { is: 'unknown' } : undefined
  }

  /** Removes a record of a call that was not sent once the store is available. */
  #removeLater({ recordKey, text, expiresAt }: OwnRecord): void {
    const { store, pending } = this.#deps
    pending.undo(() => store.removeIf(recordKey, text), expiresAt, text.length)
  }
}
