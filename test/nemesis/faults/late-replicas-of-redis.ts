import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../fault.ts'
import { untilSlow } from '../../support/time/until.ts'

/** The replicas stand still for so long before their master dies. */
const BEHIND_MS = { least: 300, most: 1500 }

/** A replica takes over without what was written last. */
export const lateReplicasOfRedis: Fault = {
  name: 'late-replicas-of-redis',
  sentence:
    'The replicas of a master stand still, the master dies, and one of them takes over without what was written last.',
  fits: ({ redis }) => redis === 'sentinel',
  async apply({ redis }, random) {
    const [master] = await redis.masters()
    const replicas = redis.nodes.filter((node) => node !== master)
    for (const replica of replicas) replica.freeze()
    await pause(BEHIND_MS.least + random() * (BEHIND_MS.most - BEHIND_MS.least))
    await master?.kill()
    for (const replica of replicas) replica.thaw()
    await untilSlow(async () => (await redis.masters()).length === 1, 'a replica takes over')
    return {
      note: 'the master dies while its replicas are behind',
      // Sessions, and ends of sessions, that are a moment old may be lost.
      touches: [{}],
      settleMs: 5000,
      async heal() {
        await master?.restart()
        await untilSlow(() => redis.isWhole(), 'the former master follows')
      },
    }
  },
}
