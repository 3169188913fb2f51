import type { CloseStatus } from './close-codes.ts'
import type { Registered, SocketRegistry } from './registry.ts'

/**
 * What one browser's socket occupies in this process from the start of its handshake until it closes: its permits and the
 * watch on its session. It is separate from both, so that an open socket keeps nothing of its handshake alive.
 */
export class SocketSlot implements Registered {
  readonly #releases: (() => void)[] = []
  /** The handshake first, the open socket later. */
  owner: Registered

  constructor(registry: SocketRegistry, owner: Registered) {
    this.owner = owner
    this.onRelease(registry.add(this))
  }

  get bufferedBytes(): number {
    return this.owner.bufferedBytes
  }

  end(close: CloseStatus): void {
    this.owner.end(close)
  }

  /** Has `release` called when the socket is over. */
  onRelease(release: () => void): void {
    this.#releases.push(release)
  }

  /** Releases everything, once. */
  release(): void {
    for (const release of this.#releases.splice(0)) release()
  }
}
