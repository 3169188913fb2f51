import { setTimeout as delay } from 'node:timers/promises'
import { unlessAway, type StoreData, type StoreHealth } from './store.ts'
import { storeNow } from '../time/store-time.ts'

/** A write whose reply was lost, or that could not be made. */
interface PendingWrite {
  readonly write: () => Promise<void>
  /** The memory that it takes until it is written. */
  readonly bytes: number
  /** When it has become pointless (epoch ms). */
  readonly until: number
  /** Called when it has become pointless before the store has told whether it was made. */
  readonly onDropped?: () => void
  /** A later write of the same name takes its place. */
  readonly name?: string | undefined
}

const RETRY_MS = 250
/** How many are tried at a time. Each waits for a reply, and one master of a Cluster may give none while the others serve. */
const AT_ONCE = 64
const MAX_WRITES = 10_000
const MAX_BYTES = 16_777_216
/** A write without a reply may still be carried out after the store has replied to later ones. */
const LATE_WRITE_MS = 5000

/** Repeats writes until the store is available again. Costs nothing while there are none. */
export class PendingWrites {
  readonly #store: Pick<StoreHealth, 'unavailableSince'>
  /** By their names, or by themselves if they have none. */
  readonly #writes = new Map<string | PendingWrite, PendingWrite>()
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
    const key = write.name ?? write
    const former = this.#writes.get(key)
    if (former !== undefined) this.#forget(former)
    if (this.#writes.size >= MAX_WRITES || this.#bytes + write.bytes > MAX_BYTES) return false
    this.#writes.set(key, write)
    this.#bytes += write.bytes
    this.#schedule()
    return true
  }

  /**
   * Takes back a write whose reply was lost, and once more for one that comes late.
   * @param undo reverses it, and returns whether there was anything to reverse
   * @param until when that has become pointless (epoch ms)
   * @param name a later one of the same name takes its place
   */
  undo(undo: () => Promise<boolean>, until: number, bytes = 0, name?: string): void {
    const write = async (): Promise<void> => {
      if (!(await undo())) setTimeout(() => void undo().catch(() => undefined), LATE_WRITE_MS).unref()
    }
    this.add({ write, bytes, until, name })
  }

  /** Resolves once none is left. Never rejects. */
  async written(): Promise<void> {
    while (this.#writes.size > 0) await delay(RETRY_MS)
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
    const left = this.#writes.values()
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, this.#writes.size) }, () => this.#tryEach(left)))
  }

  async #tryEach(left: Iterable<PendingWrite>): Promise<void> {
    for (const pending of left) {
      if (pending.until <= storeNow()) {
        pending.onDropped?.()
        this.#forget(pending)
        continue
      }
      if (this.#store.unavailableSince() !== undefined) continue
      try {
        if (await unlessAway(pending.write().then(() => true))) this.#forget(pending)
      } catch (error) {
        // A fault of this program would come each time, and the writes behind this one would wait for ever.
        this.#forget(pending)
        throw error
      }
    }
  }

  #forget(pending: PendingWrite): void {
    const key = pending.name ?? pending
    // A later one of its name may have taken its place.
    if (this.#writes.get(key) !== pending) return
    this.#writes.delete(key)
    this.#bytes -= pending.bytes
  }
}
