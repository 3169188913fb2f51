import type { Session } from '../../sessions/index.ts'
import { StoreUnavailable, type ConfirmableWrites, type StoreData, type StoreHealth } from '../../store/store.ts'
import { standstill } from '../../time/standstill.ts'
import type { KeyUsage, Usage } from './key-usage.ts'
import type { PendingWrites } from '../../store/pending-writes.ts'
import type { CallRecord, KeptAnswer } from './record.ts'
import type { RecordPlace, SealedRecords } from './sealed-records.ts'
import { storeNow } from '../../time/store-time.ts'

/** Dependencies of the records. */
export interface RecordDependencies {
  readonly store: StoreData & StoreHealth
  /** For records that must outlive a failover: that a key is taken, and that the outcome of its call is unknown. */
  readonly confirmed: ConfirmableWrites
  readonly sealed: SealedRecords
  readonly usage: KeyUsage
  readonly pending: PendingWrites
  readonly leaseMs: number
}

/** How a call ended, as its record tells a repeated call. */
export type Ending = Exclude<CallRecord['is'], 'running'> | 'freed'

/** A record that this process has created. */
export interface OwnRecord extends RecordPlace {
  readonly session: Session
  readonly digest: string
  /** The text that was written. */
  readonly text: string
  readonly leaseUntil: number
  /** When its lease began, by the clock of {@link standstill}. */
  readonly leasedAt: number
  /** When the record ends (epoch ms). */
  readonly expiresAt: number
}

/**
 * The right to send the call of a key, once. While the call runs, the claim renews its lease. Exactly one of the methods
 * `keep`, `finish` and `free` must be called in the end. They resolve when the record is written, or when it will be
 * written later because the store is unavailable, and they never reject. If the record was lost in a failover, it is
 * created again.
 */
export class Claim {
  /** Whether the response of this call may be kept. */
  readonly mayKeep: boolean
  readonly own: OwnRecord
  readonly #deps: RecordDependencies
  /** The texts of this claim, the latest first. After a write without a reply, or a failover, the store may hold any of them. */
  #texts: readonly string[]
  #leaseUntil: number
  #leasedAt: number
  #timer: NodeJS.Timeout | undefined
  #renewal: Promise<void> | undefined
  #isLost = false
  /** Called when another process has replaced the record, after a lost lease or a failover. */
  onLost: () => void = () => undefined

  constructor(deps: RecordDependencies, own: OwnRecord, usage: Usage) {
    this.#deps = deps
    this.own = own
    this.#texts = [own.text]
    this.#leaseUntil = own.leaseUntil
    this.#leasedAt = own.leasedAt
    this.mayKeep = deps.usage.isWithinLimits(usage)
    this.#timer = setInterval(() => this.#startRenewal(), deps.leaseMs / 3).unref()
  }

  /** Whether another process has replaced the record, as far as this process knows. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Whether no other process can have declared the call lost yet. It costs no round trip. */
  get maySend(): boolean {
    // Whichever clock is there first ends the lease. The record may end before it. From then on the key counts as new, and
    // another call may have it.
    const isLeased = standstill.now() < this.#leasedAt + this.#deps.leaseMs
    return !this.#isLost && isLeased && storeNow() < Math.min(this.#leaseUntil, this.own.expiresAt)
  }

  /** Keeps the response, if the session's limits allow it. */
  async keep(answer: KeptAnswer): Promise<Ending> {
    const { status, body } = answer
    if (!this.mayKeep) return this.finish({ is: 'not_kept', status })
    await this.#stop()
    const { digest } = this.own
    const kept = this.#seal({ ...answer, is: 'answered', digest })
    let notKept: string | undefined
    const textWithout = (): string => (notKept ??= this.#seal({ is: 'not_kept', digest, status }))
    let isReserved: boolean | undefined
    const write = async (): Promise<void> => {
      isReserved ??= await this.#reserve(body.length)
      await this.#replace(isReserved ? kept : textWithout())
    }
    if (!(await this.#eventually(kept.length, write))) {
      await this.#eventually(textWithout().length, () => this.#replace(textWithout()))
      return 'not_kept'
    }
    return isReserved === false ? 'not_kept' : 'answered'
  }

  /** Ends the record with the result of the call. */
  async finish(result: Result): Promise<Ending> {
    await this.#stop()
    const text = this.#seal({ ...result, digest: this.own.digest })
    await this.#eventually(text.length, () => this.#replace(text))
    return result.is
  }

  /** Removes the record, because the call was certainly not executed. */
  async free(): Promise<Ending> {
    await this.#stop()
    let isRetry = false
    await this.#eventually(0, async () => {
      const mayBeRemoved = isRetry
      isRetry = true
      for (const text of this.#texts) {
        if (!(await this.#deps.store.removeIf(this.own.recordKey, text))) continue
        // A count that stays too high only costs the session a key.
        await this.#deps.usage.removeRecord(this.own.session).catch(() => undefined)
        return
      }
      if (!mayBeRemoved) this.#noteLoss()
    })
    return 'freed'
  }

  /** Counts the bytes of a response that is larger than the usual one. @throws StoreUnavailable */
  async #reserve(bytes: number): Promise<boolean> {
    const { usage } = this.#deps
    const more = bytes - usage.prepaidBytes
    if (more <= 0) return true
    if (usage.isWithinLimits(await usage.addBytes(this.own.session, more))) return true
    // A count that stays too high only costs the session a response.
    await usage.addBytes(this.own.session, -more).catch(() => undefined)
    return false
  }

  /** One at a time: a slow renewal that is not waited for could bring back a record that was freed. */
  #startRenewal(): void {
    this.#renewal ??= this.#renew().finally(() => (this.#renewal = undefined))
  }

  async #renew(): Promise<void> {
    const { store, leaseMs } = this.#deps
    // A write that is certain to fail would only add to what the store may hold.
    if (store.unavailableSince() !== undefined) return
    const [leaseUntil, leasedAt] = [storeNow() + leaseMs, standstill.now()]
    const text = this.#seal({ is: 'running', digest: this.own.digest, leaseUntil })
    try {
      if (await this.#replace(text)) [this.#leaseUntil, this.#leasedAt] = [leaseUntil, leasedAt]
      else clearInterval(this.#timer)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  /** Returns false if the record belongs to another process now. @throws StoreUnavailable */
  async #replace(next: string): Promise<boolean> {
    const { store } = this.#deps
    const { recordKey, expiresAt } = this.own
    const texts = this.#texts
    this.#texts = [next, ...texts.filter((text) => text !== next)]
    for (const text of texts) if (await store.replace(recordKey, text, next, expiresAt)) return true
    // A failover may have lost the record. As long as no other process has created it anew, the key still belongs to this claim.
    if (texts.length > 0 && expiresAt > storeNow() && (await store.create(recordKey, next, expiresAt))) return true
    this.#texts = []
    this.#noteLoss()
    return false
  }

  #noteLoss(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.onLost()
  }

  /** Renews the lease no more: if nothing else ends the record, the outcome of the call is unknown once the lease has ended. */
  stop(): void {
    clearInterval(this.#timer)
  }

  async #stop(): Promise<void> {
    this.stop()
    await this.#renewal
  }

  /** Returns false if the write failed, and is not repeated because too many are waiting. */
  async #eventually(bytes: number, write: () => Promise<unknown>): Promise<boolean> {
    const { pending } = this.#deps
    try {
      await write()
      return true
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      return pending.add({ bytes, until: this.own.expiresAt, write: async () => void (await write()) })
    }
  }

  #seal(record: CallRecord): string {
    return this.#deps.sealed.seal(this.own, record)
  }
}

type WithoutDigest<Kind> = Kind extends CallRecord ? Omit<Kind, 'digest'> : never
/** The final content of a record. */
export type Result = WithoutDigest<Exclude<CallRecord, { is: 'running' }>>
