import type { Metrics } from '../measure.ts'
import { ENDINGS } from './close-codes.ts'
import type { Relay } from './relay.ts'

/** Few relays close at once; many are spread, so that their browsers do not all come back in one moment. */
const MS_PER_RELAY = 2

/** The open relays of this process. */
export class RelayRegistry {
  readonly #relays = new Set<Relay>()
  readonly #metrics: Metrics
  #isClosing = false
  #emptied: (() => void) | undefined

  constructor(metrics: Metrics) {
    this.#metrics = metrics
  }

  /** True once the server is on its way down: no relay is to be added any more. */
  get isClosing(): boolean {
    return this.#isClosing
  }

  /** Takes up an open relay. */
  add(relay: Relay): void {
    this.#relays.add(relay)
    this.#metrics.relays.inc({ kind: relay.kind })
  }

  /** Lets go of a relay that ended. */
  remove(relay: Relay): void {
    if (!this.#relays.delete(relay)) return
    this.#metrics.relays.dec({ kind: relay.kind })
    if (this.#relays.size === 0) this.#emptied?.()
  }

  /** Ends all of them with 1012, over `maxMs` at most. */
  async closeAll(maxMs: number): Promise<void> {
    this.#isClosing = true
    if (this.#relays.size === 0) return
    const spreadMs = Math.min(maxMs, this.#relays.size * MS_PER_RELAY)
    const emptied = new Promise<void>((resolve) => (this.#emptied = resolve))
    for (const relay of this.#relays) {
      setTimeout(() => relay.end(ENDINGS.restarting), Math.random() * spreadMs)
    }
    await emptied
  }
}
