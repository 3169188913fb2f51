import type { Fault } from '../fault.ts'
import { BUDGET_IS_NEW, oneOf, tellRedis, withoutRedis } from '../whom.ts'

const WAYS = [
  { on: 'REPLICAOF 127.0.0.1 1', off: 'REPLICAOF NO ONE' },
  { on: 'CONFIG SET min-replicas-to-write 1', off: 'CONFIG SET min-replicas-to-write 0' },
] as const

/** Redis takes no writes. */
export const readOnlyRedis: Fault = {
  name: 'read-only-redis',
  sentence: 'Redis reads and does not write: it has become a replica (READONLY), or misses its own (NOREPLICAS).',
  fits: ({ redis }) => redis === 'single',
  async apply(fleet, random) {
    const { on, off } = oneOf(WAYS, random)
    await tellRedis(fleet, [on])
    return {
      note: on,
      touches: [...withoutRedis(), BUDGET_IS_NEW],
      settleMs: 3000,
      heal: () => tellRedis(fleet, [off]),
    }
  },
}
