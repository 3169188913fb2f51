import type { Fault } from '../fault.ts'
import { tellRedis } from '../whom.ts'

/** Redis has no memory left. */
export const fullRedis: Fault = {
  name: 'full-redis',
  sentence: 'Redis is full and evicts nothing (OOM), so that only new logins and calls with a key fail.',
  fits: ({ redis }) => redis === 'single',
  async apply(fleet) {
    await tellRedis(fleet, ['CONFIG SET maxmemory 1'])
    return {
      note: 'Redis is full',
      touches: [
        { kinds: ['login', 'signup'], results: ['try_later'] },
        { kinds: ['order'], results: ['session_store_unavailable'] },
      ],
      settleMs: 1500,
      heal: () => tellRedis(fleet, ['CONFIG SET maxmemory 0']),
    }
  },
}
