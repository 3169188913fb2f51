import type { Fault } from '../fault.ts'
import { BUDGET_IS_NEW, tellRedis } from '../whom.ts'

/** Somebody empties Redis while it runs. */
export const flushedRedis: Fault = {
  name: 'flushed-redis',
  sentence:
    'All keys of Redis are removed while it runs (FLUSHALL), so that everybody is logged out, and nothing else fails.',
  fits: ({ redis }) => redis === 'single',
  async apply(fleet) {
    await tellRedis(fleet, ['FLUSHALL'])
    return {
      note: 'Redis is empty',
      touches: [
        { results: ['session_expired', 'login_required'] },
        { kinds: ['login', 'signup'], results: ['state_mismatch', 'login_failed'] },
        BUDGET_IS_NEW,
      ],
      settleMs: 2000,
      heal: () => undefined,
    }
  },
}
