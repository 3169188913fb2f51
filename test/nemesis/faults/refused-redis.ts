import { anyInstance, type Fault } from '../fault.ts'
import { onLinks, withoutRedis } from '../whom.ts'

/** There is no way to Redis for one instance. */
export const refusedRedis: Fault = {
  name: 'refused-redis',
  sentence: 'The connections of one instance to Redis break, and new ones are refused.',
  fits: ({ redis }) => redis === 'single',
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    return {
      note: `${instance.name} has no connection to Redis`,
      touches: withoutRedis([instance.at]),
      settleMs: 3000,
      heal: onLinks([instance], 'redis', { refuses: true }),
    }
  },
}
