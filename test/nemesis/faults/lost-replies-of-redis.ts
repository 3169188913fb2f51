import { anyInstance, type Fault } from '../fault.ts'
import { onLinks, withoutRedis } from '../whom.ts'

const SHARE = 0.05

/** Replies of Redis are lost after it has run the commands. */
export const lostRepliesOfRedis: Fault = {
  name: 'lost-replies-of-redis',
  sentence:
    'A connection of one instance to Redis breaks now and then, when Redis has run a command and before its reply.',
  fits: ({ redis }) => redis === 'single',
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    const cuts = (way: 'request' | 'reply') => (way === 'reply' && random() < SHARE ? ('before' as const) : undefined)
    return {
      note: `${instance.name} loses replies of Redis`,
      touches: withoutRedis([instance.at]),
      settleMs: 3000,
      heal: onLinks([instance], 'redis', { cuts }),
    }
  },
}
