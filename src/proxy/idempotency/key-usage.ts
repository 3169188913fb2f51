import type { Config } from '../../config/config.ts'
import type { Session } from '../../sessions/index.ts'
import { partKey } from '../../store/keys.ts'
import type { StoreData } from '../../store/store.ts'
import { storeNow } from '../../time/store-time.ts'

/** The keys of a session, and the bytes of responses kept for them. */
export interface Usage {
  readonly records: number
  readonly bytes: number
}

/** A record in the counter of records and bytes: one number, so that one command counts both. The bytes never reach this. */
const RECORD = 2 ** 32

/**
 * Counts what the keys of each session occupy in the store, for all instances together. The counts start anew after
 * IDEMPOTENCY_TTL_SECONDS, so the records of a session that lives longer may reach twice the limits.
 */
export class KeyUsage {
  /** Counted with every record, so that a response up to this size needs no counting of its own. */
  readonly prepaidBytes: number
  readonly #store: StoreData
  readonly #limits: Config['idempotency']

  constructor(store: StoreData, limits: Config['idempotency']) {
    this.#store = store
    this.#limits = limits
    this.prepaidBytes = Math.floor(limits.maxKeptBytes / limits.maxRecords)
  }

  /** Counts a new record. @throws StoreUnavailable */
  addRecord(session: Session): Promise<Usage> {
    return this.#add(session, RECORD + this.prepaidBytes)
  }

  /** No longer counts a record that was removed. @throws StoreUnavailable */
  removeRecord(session: Session): Promise<Usage> {
    return this.#add(session, -RECORD - this.prepaidBytes)
  }

  /** Counts a response that is to be kept, or with a negative number, no longer counts it. @throws StoreUnavailable */
  addBytes(session: Session, bytes: number): Promise<Usage> {
    return this.#add(session, bytes)
  }

  /** Whether the session may not send another key. */
  isExhausted({ records }: Usage): boolean {
    return records > 2 * this.#limits.maxRecords
  }

  /** Whether the latest response of the session is kept. */
  isWithinLimits({ records, bytes }: Usage): boolean {
    return records <= this.#limits.maxRecords && bytes <= this.#limits.maxKeptBytes
  }

  async #add(session: Session, by: number): Promise<Usage> {
    const ttlMs = Math.min(this.#limits.ttlMs, session.record.endsAt - storeNow())
    const total = await this.#store.count(partKey(session.key, 'keys'), by, ttlMs)
    // The total is negative when a record is removed just after the counts have started anew.
    if (total <= 0) return { records: 0, bytes: 0 }
    return { records: Math.floor(total / RECORD), bytes: total % RECORD }
  }
}
