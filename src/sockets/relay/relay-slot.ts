import type { Ending } from '../close-codes.ts'
import type { Registered, RelayRegistry } from '../registry.ts'

/**
 * What one browser's socket takes up in this process, from the start of its handshake to the end of its relay: its
 * places, the watch on its session. Apart from both, so that a relay keeps nothing of its handshake alive.
 */
export class RelaySlot implements Registered {
  readonly #holds: (() => void)[] = []
  #holder: Registered

  constructor(registry: RelayRegistry, holder: Registered) {
    this.#holder = holder
    this.hold(registry.add(this))
  }

  /** Hands it on, from the handshake to the relay. */
  set holder(holder: Registered) {
    this.#holder = holder
  }

  get bufferedBytes(): number {
    return this.#holder.bufferedBytes
  }

  end(ending: Ending): void {
    this.#holder.end(ending)
  }

  /** Something to give back when it is over. */
  hold(giveBack: () => void): void {
    this.#holds.push(giveBack)
  }

  giveBack(): void {
    for (const giveBack of this.#holds.splice(0)) giveBack()
  }
}
