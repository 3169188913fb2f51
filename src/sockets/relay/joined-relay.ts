import { logFailure } from '../../telemetry/failure-log.ts'
import { codeLabel, type CloseStatus } from '../close-codes.ts'
import type { Registered } from '../registry.ts'
import type { RelayDependencies } from './relay-dependencies.ts'
import type { RelaySlot } from './relay-slot.ts'
import { Relay } from './relay.ts'
import type { PeerConnection } from '../peer.ts'

/** What a relay is seen as in the metrics. */
export type RelayKind = 'public' | 'demo' | 'real' | 'trading'

/** What the log says of a relay beside its end. */
export interface RelayIdentity {
  readonly kind: RelayKind
  readonly reqId: string
  readonly session: string
  /** The tag of its account, where it has one. */
  readonly account?: string
  readonly client: string
}

/** An open relay as operators see it: counted while it is open, logged and given back when it ends. */
export class JoinedRelay implements Registered {
  readonly #deps: Pick<RelayDependencies, 'metrics' | 'log'>
  readonly #identity: RelayIdentity
  readonly #slot: RelaySlot
  readonly #openedAt = performance.now()
  readonly #relay: Relay

  constructor(
    connections: { browser: PeerConnection; upstream: PeerConnection },
    identity: RelayIdentity,
    slot: RelaySlot,
    deps: Pick<RelayDependencies, 'metrics' | 'log' | 'config'>,
  ) {
    this.#deps = deps
    this.#identity = identity
    this.#slot = slot
    deps.metrics.relays.inc({ kind: identity.kind })
    slot.owner = this
    this.#relay = new Relay(connections, {
      limits: deps.config,
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
    const { kind, ...identity } = this.#identity
    this.#slot.release()
    metrics.relays.dec({ kind })
    metrics.relayCloses.inc({ code: codeLabel(close) })
    if (violation !== undefined) {
      const requestLog = log.child({ reqId: identity.reqId })
      logFailure(requestLog, 'upstream broke the WebSocket protocol', { kind, why: violation })
    }
    const seconds = Math.round((performance.now() - this.#openedAt) / 1000)
    log.info({ audit: 'relay_ended', ...identity, kind, code: close?.code, seconds }, 'relay ended')
  }
}
