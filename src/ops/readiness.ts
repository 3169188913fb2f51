import type { FastifyInstance } from 'fastify'
import type { StoreHealth } from '../store/store.ts'
import type { OpsSource } from './ops-listener.ts'

/**
 * Whether a server should get traffic, and why not.
 * @param graceMs an outage of the store shorter than this does not make the server unready
 */
export function readiness({ server }: FastifyInstance, store: StoreHealth, graceMs: number) {
  let isDraining = false
  return {
    /** From now on the server is not ready. */
    drain: (): void => void (isDraining = true),
    reasons: (): string[] => {
      const downSince = store.unavailableSince()
      const isDown = downSince !== undefined && Date.now() - downSince >= graceMs
      return [
        ...(isDraining ? ['draining'] : server.listening ? [] : ['starting']),
        ...(isDown ? ['session store unavailable'] : []),
      ]
    },
    warnings: (): string[] => store.warnings(),
  } satisfies Pick<OpsSource, 'reasons' | 'warnings'> & { drain: () => void }
}
