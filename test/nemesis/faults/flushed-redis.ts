import type { Fault } from '../fault.ts'
import { WRITES_ARE_LOST, tellRedis } from '../whom.ts'

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
      touches: WRITES_ARE_LOST,
      settleMs: 2000,
      heal: () => undefined,
    }
  },
}
