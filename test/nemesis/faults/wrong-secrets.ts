import { randomBytes } from 'node:crypto'
import { SECRETS } from '../../support/server/test-server.ts'
import { anyInstance, type Applied, type Fault } from '../fault.ts'
import type { Fleet, Instance } from '../fleet.ts'

/** A secret changes at one instance alone. */
export const wrongSecrets: Fault = {
  name: 'wrong-secrets',
  sentence:
    'An operator skips the first step of a rotation: one instance writes with a new secret that the others cannot read.',
  lastsMs: { least: 4000, most: 8000 },
  apply: (fleet, random) => ownSecret(fleet, anyInstance(fleet, random)),
}

/** The secrets of a fleet. It keeps those that it has got so: what was written with them is still in use. */
const KEPT = new WeakMap<Fleet, readonly string[]>()

/** From now on an instance writes with a secret that the others get only when this is healed. */
export function ownSecret(fleet: Fleet, instance: Instance): Applied {
  const fresh = randomBytes(32).toString('hex')
  const kept = (): readonly string[] => KEPT.get(fleet) ?? [SECRETS]
  instance.secrets.change({ SESSION_SECRETS: [fresh, ...kept()].join() })
  KEPT.set(fleet, [...kept(), fresh])
  return {
    note: `${instance.name} writes with another secret`,
    touches: [
      { results: ['login_required', 'session_expired'] },
      { kinds: ['login', 'signup'], results: ['state_mismatch'] },
      // Nor can they read which pauses it has set or lifted, and they hold orders until they know.
      { kinds: ['order'], results: ['orders_paused', 'session_store_unavailable'] },
      // What was answered is in a record that the others cannot read.
      { kinds: ['order'], results: ['idempotency_in_progress', 'outcome_unknown'] },
    ],
    settleMs: 8000,
    heal() {
      // What was written meanwhile can be read from now on. Where a later fault has begun, its instance keeps its secret.
      for (const { secrets } of fleet.instances) secrets.change({ SESSION_SECRETS: kept().join() })
    },
  }
}
