import { audit } from '../telemetry/audit/audit.ts'
import { NO_SPAN } from '../telemetry/traces/span.ts'
import { attributesOf, codeLabel, WITHOUT_CODE, type CloseStatus } from './close-codes.ts'
import type { Registered } from './registry.ts'
import type { SocketDependencies } from './socket-dependencies.ts'
import { endedKind, type SocketIdentity } from './socket-log.ts'

type SlotDependencies = Pick<SocketDependencies, 'registry' | 'metrics' | 'log'>

/**
 * What one browser's socket occupies in this process from the start of its handshake until it closes: its permits, the watch on
 * its session, and its place among the open sockets. It is separate from the handshake, so that an open socket keeps nothing of
 * that alive.
 */
export class SocketSlot implements Registered {
  /** The handshake first, the open socket later. */
  owner: Registered
  /** Records that the open socket has ended. */
  measured = NO_SPAN.measure('')
  readonly #deps: SlotDependencies
  readonly #releases: (() => void)[] = []

  constructor(deps: SlotDependencies, owner: Registered) {
    this.#deps = deps
    this.owner = owner
    this.onRelease(deps.registry.add(this))
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

  /**
   * Counts an open socket.
   * @returns how to end it, once: it is released, and its end counted and logged
   */
  opened(identity: SocketIdentity): (close: CloseStatus) => void {
    const { metrics, log } = this.#deps
    const { kind } = identity
    const openedAt = performance.now()
    metrics.relays.inc({ kind })
    return (close) => {
      this.release()
      metrics.relays.dec({ kind })
      metrics.relayCloses.inc({ kind: endedKind(kind), code: codeLabel(close) })
      this.measured({ name: 'socket closed', attributes: attributesOf(close) })
      const seconds = Math.round((performance.now() - openedAt) / 1000)
      audit(log, 'relay_ended', { ...identity, code: close === WITHOUT_CODE ? undefined : close.code, seconds })
    }
  }
}
