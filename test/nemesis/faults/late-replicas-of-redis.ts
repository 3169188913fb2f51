import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../fault.ts'
import { replicatedIn } from '../take-over.ts'

/** The replicas stand still for so long before their master dies. */
const BEHIND_MS = { least: 500, most: 2000 }

/** A replica takes over without what was written last. */
export const lateReplicasOfRedis: Fault = {
  name: 'late-replicas-of-redis',
  sentence:
    'The replicas of a master stand still, the master dies, and one of them takes over without what was written last.',
  fits: ({ redis }) => redis === 'sentinel',
  async apply(fleet, random) {
    const servers = await replicatedIn(fleet)
    const behindMs = BEHIND_MS.least + random() * (BEHIND_MS.most - BEHIND_MS.least)
    servers.freeze()
    const takenOver = pause(behindMs).then(() => servers.takeOver())
    return {
      note: `the master dies when its replicas are ${Math.round(behindMs)} ms behind`,
      // Sessions, and ends of sessions, that are a moment old may be lost.
      touches: [{}],
      settleMs: 5000,
      async heal() {
        await takenOver
        await servers.comeBack()
      },
    }
  },
}
