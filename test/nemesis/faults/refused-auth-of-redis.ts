import type { Fault } from '../fault.ts'
import { tellRedis, withoutRedis } from '../whom.ts'

const PASSWORD = 'nemesis'

/** Redis no longer takes the credentials of the instances. */
export const refusedAuthOfRedis: Fault = {
  name: 'refused-auth-of-redis',
  sentence: 'Redis gets a password that the instances do not have, and all connections break (NOAUTH).',
  fits: ({ redis }) => redis === 'single',
  async apply(fleet) {
    await tellRedis(fleet, [`CONFIG SET requirepass ${PASSWORD}`])
    await tellRedis(fleet, ['CLIENT KILL TYPE normal', 'CLIENT KILL TYPE pubsub'], PASSWORD)
    return {
      note: 'Redis has another password',
      touches: withoutRedis(),
      settleMs: 5000,
      async heal() {
        await tellRedis(fleet, [`ACL SETUSER default nopass`], PASSWORD)
      },
    }
  },
}
