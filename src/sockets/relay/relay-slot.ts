import type { CloseStatus } from '../close-codes.ts'
import type { Registered, RelayRegistry } from '../registry.ts'

/**
 * What one browser's socket takes up in this process, from the start of its handshake to the end of its relay: its
 * places, the watch on its session. Apart from both, so that a relay keeps nothing of its handshake alive.
 */
export class RelaySlot implements Registered {
  readonly #releases: (() => void)[] = []
  #owner: Registered

  constructor(registry: RelayRegistry, owner: Registered) {
    this.#owner = owner
    this.onRelease(registry.add(this))
  }

  /** Hands it on, from the handshake to the relay. */
  set owner(owner: Registered) {
    this.#owner = owner
  }

  get bufferedBytes(): number {
    return this.#owner.bufferedBytes
  }

  end(close: CloseStatus): void {
    this.#owner.end(close)
  }

  /** Something to give back when it is over. */
  onRelease(release: () => void): void {
    this.#releases.push(release)
  }

  release(): void {
    for (const release of this.#releases.splice(0)) release()
  }
}
