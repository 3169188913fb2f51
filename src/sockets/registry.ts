import { CLOSE, type CloseStatus } from './close-codes.ts'

/** Few relays close at once; many are spread, so that their browsers do not all come back in one moment. */
const MS_PER_RELAY = 2

/** A browser's socket on its way to a relay, or joined. */
export interface Registered {
  /** What waits in this process for its peers. */
  readonly bufferedBytes: number
  end(close: CloseStatus): void
}

/** What this process holds open, or is about to. */
export class RelayRegistry {
  readonly #entries = new Set<Registered>()
  #isClosing = false
  #emptied: (() => void) | undefined

  /** True once the server is on its way down: nothing is to be opened any more. */
  get isClosing(): boolean {
    return this.#isClosing
  }

  /** What waits in this process for the peers of all of them. */
  get bufferedBytes(): number {
    let bytes = 0
    for (const entry of this.#entries) bytes += entry.bufferedBytes
    return bytes
  }

  /** Takes one up. Returns how to let go of it; letting go twice is harmless. */
  add(entry: Registered): () => void {
    this.#entries.add(entry)
    return () => {
      if (this.#entries.delete(entry) && this.#entries.size === 0) this.#emptied?.()
    }
  }

  /** Ends all of them with 1012, over `maxMs` at most. */
  async closeAll(maxMs: number): Promise<void> {
    this.#isClosing = true
    if (this.#entries.size === 0) return
    const spreadMs = Math.min(maxMs, this.#entries.size * MS_PER_RELAY)
    const emptied = new Promise<void>((resolve) => (this.#emptied = resolve))
    for (const entry of this.#entries) {
      setTimeout(() => entry.end(CLOSE.restarting), Math.random() * spreadMs)
    }
    await emptied
  }
}
