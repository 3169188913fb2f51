import type { Fault } from '../fault.ts'
import { BUDGET_IS_NEW, withoutRedis } from '../whom.ts'

/** Redis dies, and comes back with its data. */
export const restartedRedis: Fault = {
  name: 'restarted-redis',
  sentence: 'Redis is killed, and comes back later with what it had written down.',
  fits: ({ redis }) => redis === 'single',
  async apply({ redis }) {
    const [node] = redis.nodes
    await node?.kill()
    return {
      note: 'Redis is gone',
      touches: [...withoutRedis(), BUDGET_IS_NEW],
      settleMs: 3000,
      heal: () => node?.restart(),
    }
  },
}
