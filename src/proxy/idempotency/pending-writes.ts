import { StoreUnavailable, type StoreData, type StoreHealth } from '../../store/store.ts'
import { storeNow } from '../../time/store-time.ts'

/** A write to the store that failed because the store was unavailable. */
interface PendingWrite {
  readonly write: () => Promise<void>
  /** The memory that it takes until it is written. */
  readonly bytes: number
  /** When it has become pointless (epoch ms). */
  readonly until: number
}

const RETRY_MS = 250
const MAX_WRITES = 10_000
const MAX_BYTES = 16_777_216

/** Repeats writes until the store is available again. Costs nothing while there are none. */
export class PendingWrites {
  readonly #store: Pick<StoreHealth, 'unavailableSince'>
  readonly #writes = new Set<PendingWrite>()
  #bytes = 0
  #timer: NodeJS.Timeout | undefined
  #repetition: Promise<void> | undefined

  constructor(store: Pick<StoreHealth, 'unavailableSince'> & Pick<StoreData, 'onChange'>) {
    this.#store = store
    // The store reports that any key may have changed when its link is back. Others may ask for these records at once.
    store.onChange((key) => {
      if (key === undefined && this.#writes.size > 0 && store.unavailableSince() === undefined) void this.#repeat()
    })
  }

  /** Repeats a write. Returns false if it is dropped, because too many are waiting. */
  add(write: PendingWrite): boolean {
    if (this.#writes.size >= MAX_WRITES || this.#bytes + write.bytes > MAX_BYTES) return false
    this.#writes.add(write)
    this.#bytes += write.bytes
    this.#schedule()
    return true
  }

  /** Tries all writes once more, unless the store is unavailable, and forgets the writes that fail. */
  async close(): Promise<void> {
    await this.#repeat()
    clearTimeout(this.#timer)
    this.#writes.clear()
  }

  #schedule(): void {
    if (this.#writes.size === 0) return
    this.#timer ??= setTimeout(() => void this.#repeat(), RETRY_MS).unref()
  }

  #repeat(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#repetition ??= this.#tryAll().finally(() => {
      this.#repetition = undefined
      this.#schedule()
    })
    return this.#repetition
  }

  async #tryAll(): Promise<void> {
    for (const pending of this.#writes) {
      if (this.#store.unavailableSince() !== undefined) return
      if (pending.until <= storeNow() || (await succeeds(pending))) this.#forget(pending)
    }
  }

  #forget(pending: PendingWrite): void {
    if (this.#writes.delete(pending)) this.#bytes -= pending.bytes
  }
}

async function succeeds({ write }: PendingWrite): Promise<boolean> {
  try {
    await write()
    return true
  } catch (error) {
    if (error instanceof StoreUnavailable) return false
    throw error
  }
}
