import { anyInstance, type Fault } from '../fault.ts'
import { onLinks, oneOf, withoutRedis } from '../whom.ts'

/** Only one direction between an instance and Redis is silent. */
export const deafRedis: Fault = {
  name: 'deaf-redis',
  sentence: 'Commands of one instance do not reach Redis, or are executed and the replies do not come back.',
  fits: ({ redis }) => redis === 'single',
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    const way = oneOf(['request', 'reply'] as const, random)
    return {
      note: `${instance.name} and Redis: no ${way} passes`,
      touches: withoutRedis([instance.at]),
      settleMs: 5000,
      heal: onLinks([instance], 'redis', { holds: [way] }),
    }
  },
}
