import type { DurableTopology } from '../../support/redis/durable-topologies.ts'
import type { Fault } from '../fault.ts'
import { BUDGET_IS_NEW, oneOf, withoutRedis } from '../whom.ts'

/** Fewer masters cannot agree that one of them is dead. */
const FEWEST = 3
/** Nobody is locked out for longer (docs/operating/redis.md, Redis). */
const LOCKED_OUT_MS = 10_000

/** Those that have lost one, or are about to. */
const shrunk = new WeakSet<DurableTopology>()

/** A Cluster has one master less. */
export const fewerMastersOfRedis: Fault = {
  name: 'fewer-masters-of-redis',
  sentence:
    'The keys of a master are moved to another one, and it is taken out of the Cluster, with the official tool (reshard, del-node). It goes on running.',
  fits: ({ redis }) => redis === 'cluster',
  lastsMs: { least: 0, most: 0 },
  async apply({ redis }, random) {
    const masters = await redis.masters()
    if (masters.length < FEWEST || shrunk.has(redis))
      return { note: 'there is no master to spare', touches: [], settleMs: 0, heal: () => undefined }
    shrunk.add(redis)
    const master = oneOf(masters, random)
    // A Cluster that another fault has broken cannot move its keys.
    const removed = redis.remove?.(master).catch(() => undefined)
    return {
      note: `the master at ${master.port} is taken away`,
      touches: [...withoutRedis(), BUDGET_IS_NEW],
      settleMs: LOCKED_OUT_MS,
      heal: () => removed,
    }
  },
}
