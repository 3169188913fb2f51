import { audit } from '../telemetry/audit/audit.ts'
import { codeLabel, type CloseStatus } from './close-codes.ts'
import type { SocketSlot } from './slot.ts'
import type { SocketDependencies } from './socket-dependencies.ts'
import { endedKind, type SocketIdentity } from './socket-log.ts'

/** An open socket as operators see it: counted while it is open, logged and released when it ends. */
export class OpenSocket {
  readonly #identity: SocketIdentity
  readonly #slot: SocketSlot
  readonly #deps: Pick<SocketDependencies, 'metrics' | 'log'>
  readonly #openedAt = performance.now()

  constructor(identity: SocketIdentity, slot: SocketSlot, deps: Pick<SocketDependencies, 'metrics' | 'log'>) {
    this.#identity = identity
    this.#slot = slot
    this.#deps = deps
    deps.metrics.relays.inc({ kind: identity.kind })
  }

  /** To be called once. */
  ended(close: CloseStatus | undefined): void {
    const { metrics, log } = this.#deps
    this.#slot.release()
    const { kind } = this.#identity
    metrics.relays.dec({ kind })
    metrics.relayCloses.inc({ kind: endedKind(kind), code: codeLabel(close) })
    const seconds = Math.round((performance.now() - this.#openedAt) / 1000)
    audit(log, 'relay_ended', { ...this.#identity, code: close?.code, seconds })
  }
}
