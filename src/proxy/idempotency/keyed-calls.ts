import type { Config } from '../../config/config.ts'
import type { Envelope } from '../../sessions/index.ts'
import type { ConfirmableWrites, StoreData, StoreHealth } from '../../store/store.ts'
import { within } from '../../time/within.ts'
import { IdempotencyRecords } from './idempotency-records.ts'

/** At shutdown, calls whose browsers have left get this long to finish, and then their records. */
const CLOSE_GRACE_MS = 5000

/** The calls with an Idempotency-Key that this process is sending, and the records of all. */
export class KeyedCalls {
  readonly records: IdempotencyRecords
  readonly maxBodyBytes: number
  readonly maxAnswerBytes: number
  readonly #running = new Set<Promise<void>>()

  /** @param confirmed see {@link IdempotencyRecords} */
  constructor(
    store: StoreData & StoreHealth,
    envelope: Envelope,
    config: Config['idempotency'],
    confirmed: ConfirmableWrites,
  ) {
    this.records = new IdempotencyRecords(store, envelope, config, undefined, confirmed)
    this.maxBodyBytes = config.maxBodyBytes
    this.maxAnswerBytes = config.maxAnswerBytes
  }

  /** Has the shutdown wait for a call. */
  async track(call: Promise<void>): Promise<void> {
    const tracked = call.finally(() => this.#running.delete(tracked))
    this.#running.add(tracked)
    return tracked
  }

  /** Waits for the calls that are running, and for their records. */
  async close(): Promise<void> {
    await within(CLOSE_GRACE_MS, Promise.allSettled(this.#running))
    await within(CLOSE_GRACE_MS, this.records.close())
  }
}
