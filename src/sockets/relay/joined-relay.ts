import { logFailure } from '../../telemetry/failure-log.ts'
import { codeLabel, type CloseStatus } from '../close-codes.ts'
import type { Registered } from '../registry.ts'
import type { SocketSlot } from '../slot.ts'
import type { SocketDependencies } from '../socket-dependencies.ts'
import type { SocketIdentity } from '../socket-log.ts'
import { Relay, type RelayLimits, type RelayPeers } from './relay.ts'

interface JoinedRelayDependencies extends Pick<SocketDependencies, 'metrics' | 'log'> {
  readonly limits: RelayLimits
}

/** An open relay as operators see it: counted while it is open, logged and released when it ends. */
export class JoinedRelay implements Registered {
  readonly #deps: JoinedRelayDependencies
  readonly #identity: SocketIdentity
  readonly #slot: SocketSlot
  readonly #openedAt = performance.now()
  readonly #relay: Relay

  constructor(peers: RelayPeers, identity: SocketIdentity, slot: SocketSlot, deps: JoinedRelayDependencies) {
    this.#deps = deps
    this.#identity = identity
    this.#slot = slot
    deps.metrics.relays.inc({ kind: identity.kind })
    slot.owner = this
    this.#relay = new Relay(peers, {
      limits: deps.limits,
      metrics: deps.metrics,
      onEnd: (close, violation) => this.#ended(close, violation),
    })
  }

  get bufferedBytes(): number {
    return this.#relay.bufferedBytes
  }

  end(close: CloseStatus): void {
    this.#relay.end(close)
  }

  #ended(close: CloseStatus | undefined, violation: string | undefined): void {
    const { metrics, log } = this.#deps
    const { kind, reqId } = this.#identity
    this.#slot.release()
    metrics.relays.dec({ kind })
    metrics.relayCloses.inc({ code: codeLabel(close) })
    if (violation !== undefined) {
      logFailure(log.child({ reqId }), 'upstream broke the WebSocket protocol', { kind, why: violation })
    }
    const seconds = Math.round((performance.now() - this.#openedAt) / 1000)
    log.info({ audit: 'relay_ended', ...this.#identity, code: close?.code, seconds }, 'relay ended')
  }
}
