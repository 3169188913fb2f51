import type { FastifyInstance } from 'fastify'
import type { StoreHealth } from '../store/store.ts'
import type { OpsSource } from './ops-listener.ts'

/** Whether this process should get traffic, and why not. */
export class Readiness implements Pick<OpsSource, 'reasons' | 'warnings'> {
  readonly #server: FastifyInstance
  readonly #store: StoreHealth
  readonly #graceMs: number
  #isDraining = false

  /** @param graceMs an outage of the store shorter than this does not make the process unready */
  constructor(server: FastifyInstance, store: StoreHealth, graceMs: number) {
    this.#server = server
    this.#store = store
    this.#graceMs = graceMs
  }

  /** From now on the process is not ready. */
  drain(): void {
    this.#isDraining = true
  }

  reasons(): string[] {
    const reasons: string[] = []
    if (this.#isDraining) reasons.push('draining')
    else if (!this.#server.server.listening) reasons.push('starting')
    const downSince = this.#store.unavailableSince()
    const isDown = downSince !== undefined && Date.now() - downSince >= this.#graceMs
    if (isDown) reasons.push('session store unavailable')
    return reasons
  }

  warnings(): string[] {
    return this.#store.warnings()
  }
}
