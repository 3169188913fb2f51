import { logFailure } from '../../telemetry/failure-log.ts'
import { codeLabel, type Ending } from '../close-codes.ts'
import type { Registered } from '../registry.ts'
import type { RelayParts } from './relay-parts.ts'
import type { RelaySlot } from './relay-slot.ts'
import { Relay } from './relay.ts'
import type { Line } from '../side.ts'

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
  readonly #parts: Pick<RelayParts, 'metrics' | 'log'>
  readonly #identity: RelayIdentity
  readonly #slot: RelaySlot
  readonly #openedAt = performance.now()
  readonly #relay: Relay

  constructor(
    lines: { browser: Line; upstream: Line },
    identity: RelayIdentity,
    slot: RelaySlot,
    parts: Pick<RelayParts, 'metrics' | 'log' | 'config'>,
  ) {
    this.#parts = parts
    this.#identity = identity
    this.#slot = slot
    parts.metrics.relays.inc({ kind: identity.kind })
    slot.holder = this
    this.#relay = new Relay(lines, {
      limits: parts.config,
      metrics: parts.metrics,
      onEnd: (ending, violation) => this.#ended(ending, violation),
    })
  }

  get bufferedBytes(): number {
    return this.#relay.bufferedBytes
  }

  end(ending: Ending): void {
    this.#relay.end(ending)
  }

  #ended(ending: Ending | undefined, violation: string | undefined): void {
    const { metrics, log } = this.#parts
    const { kind, ...identity } = this.#identity
    this.#slot.giveBack()
    metrics.relays.dec({ kind })
    metrics.relayEndings.inc({ code: codeLabel(ending) })
    if (violation !== undefined) {
      const told = log.child({ reqId: identity.reqId })
      logFailure(told, 'upstream broke the WebSocket protocol', { kind, why: violation })
    }
    const seconds = Math.round((performance.now() - this.#openedAt) / 1000)
    log.info({ audit: 'relay_ended', ...identity, kind, code: ending?.code, seconds }, 'relay ended')
  }
}
