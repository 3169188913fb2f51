import type { Fault } from '../fault.ts'
import { BUDGET_IS_NEW, withoutRedis } from '../whom.ts'

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
      touches: [
        ...withoutRedis(),
        BUDGET_IS_NEW,
        { results: ['session_expired', 'login_required'] },
        { kinds: ['login', 'signup'], results: ['state_mismatch', 'login_failed'] },
      ],
      settleMs: 5000,
      async heal() {
        await node?.forget()
        await node?.restart()
      },
    }
  },
}
