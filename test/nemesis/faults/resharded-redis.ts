import type { Fault } from '../fault.ts'
import { oneOf, withoutRedis } from '../whom.ts'

/** Nobody is locked out for longer (docs/operating/redis.md, Redis). */
const LOCKED_OUT_MS = 10_000
/** A part of what a master has, which is moved within seconds. */
const SLOTS = { least: 200, most: 1500 }

/** Keys move between masters. */
export const reshardedRedis: Fault = {
  name: 'resharded-redis',
  sentence:
    'Slots of a Cluster are moved from one master to another with the official tool (reshard) while traffic runs, and back.',
  fits: ({ redis }) => redis === 'cluster',
  async apply({ redis }, random) {
    const masters = await redis.masters()
    const from = oneOf(masters, random)
    const to = oneOf(
      masters.filter((master) => master !== from),
      random,
    )
    const slots = Math.round(SLOTS.least + random() * (SLOTS.most - SLOTS.least))
    // A Cluster that another fault has broken cannot move its keys.
    const moved = redis.reshard?.(from, to, slots).catch(() => undefined)
    return {
      note: `${slots} slots are moved from the master at ${from.port} to that at ${to.port}`,
      touches: withoutRedis(),
      settleMs: LOCKED_OUT_MS,
      async heal() {
        await moved
        await redis.reshard?.(to, from, slots).catch(() => undefined)
      },
    }
  },
}
