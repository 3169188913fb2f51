import type { Fault } from '../fault.ts'
import type { Touch } from '../history.ts'
import { oneOf, tellRedis, withoutRedis } from '../whom.ts'

/** Without these the store is unavailable. */
const NEEDED = ['get', 'mget', 'set', 'del', 'incrby', 'pexpiretime', 'pexpireat', 'eval', 'hset', 'hgetall'] as const
/** Without these something is worse than before, and everybody is served. */
const SPARED = [
  'time',
  'getdel',
  'hdel',
  'pexpire',
  'info',
  'wait',
  'publish',
  'role',
  'getrange',
  'dbsize',
  'scan',
] as const

/** A call that was not sent, since orders are paused for example, cannot give its key back. */
const KEYS_ARE_KEPT: Touch = { results: ['idempotency_in_progress'] }

/** The user of Redis loses a right. */
export const takenRights: Fault = {
  name: 'rights-of-redis',
  sentence: 'The user of the instances may not run one of the documented commands any more (ACL).',
  fits: ({ redis }) => redis === 'single',
  async apply(fleet, random) {
    const isNeeded = random() < 0.5
    const right = oneOf(isNeeded ? NEEDED : SPARED, random)
    await tellRedis(fleet, [`ACL SETUSER default -${right}`])
    return {
      note: `the right to ${right} is taken`,
      touches: [...(isNeeded ? withoutRedis() : []), ...(right === 'del' ? [KEYS_ARE_KEPT] : [])],
      settleMs: 3000,
      heal: () => tellRedis(fleet, [`ACL SETUSER default +${right}`]),
    }
  },
}
