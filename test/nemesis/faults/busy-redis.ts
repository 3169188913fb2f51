import { askRedis } from '../../support/redis/topologies.ts'
import type { Fault } from '../fault.ts'
import { tellRedis, withoutRedis } from '../whom.ts'

const ENDLESS = ['EVAL', 'while true do end', '0'] as const

/** Somebody's script does not end. */
export const busyRedis: Fault = {
  name: 'busy-redis',
  sentence: 'Redis runs a script that does not end, and refuses all other commands (BUSY) until that is killed.',
  fits: ({ redis }) => redis === 'single',
  async apply(fleet) {
    await tellRedis(fleet, ['CONFIG SET busy-reply-threshold 100'])
    void askRedis(fleet.redis, ENDLESS)
    return {
      note: 'Redis runs an endless script',
      touches: withoutRedis(),
      settleMs: 3000,
      heal: () => tellRedis(fleet, ['SCRIPT KILL']),
    }
  },
}
