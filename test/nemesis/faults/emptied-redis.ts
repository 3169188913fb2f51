import type { Fault } from '../fault.ts'
import { WRITES_ARE_LOST, withoutRedis } from '../whom.ts'

/** Redis loses everything. */
export const emptiedRedis: Fault = {
  name: 'emptied-redis',
  sentence: 'Redis is killed, and comes back later without any data, so that everybody is logged out.',
  fits: ({ redis }) => redis === 'single',
  async apply({ redis }) {
    const [node] = redis.nodes
    await node?.kill()
    return {
      note: 'Redis is gone, and will have forgotten everything',
      touches: [...withoutRedis(), ...WRITES_ARE_LOST],
      settleMs: 5000,
      async heal() {
        await node?.forget()
        await node?.restart()
      },
    }
  },
}
