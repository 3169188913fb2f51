import { anyInstance, type Fault } from '../fault.ts'
import { onLinks } from '../whom.ts'

const SLOW_MS = { least: 10, most: 150 }

/** Redis is far away. */
export const slowRedis: Fault = {
  name: 'slow-redis',
  sentence: 'All that one instance and Redis say to each other takes up to 150 ms, which nobody may feel as a failure.',
  fits: ({ redis }) => redis === 'single',
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    const slowMs = Math.round(SLOW_MS.least + random() * (SLOW_MS.most - SLOW_MS.least))
    return {
      note: `Redis is ${slowMs} ms away from ${instance.name}`,
      touches: [],
      settleMs: 0,
      heal: onLinks([instance], 'redis', { slowMs }),
    }
  },
}
