import type { Fault } from '../fault.ts'
import { tellRedis, withoutRedis } from '../whom.ts'

/** Redis stands still, with all of its connections open. */
export const frozenRedis: Fault = {
  name: 'frozen-redis',
  sentence: 'The process of Redis stands still (SIGSTOP), or it lets all writes wait (CLIENT PAUSE).',
  fits: ({ redis }) => redis === 'single',
  async apply(fleet, random) {
    const [node] = fleet.redis.nodes
    const isPaused = random() < 0.5
    if (isPaused) await tellRedis(fleet, ['CLIENT PAUSE 60000 WRITE'])
    else node?.freeze()
    return {
      note: isPaused ? 'Redis lets writes wait' : 'Redis stands still',
      touches: withoutRedis(),
      settleMs: 5000,
      heal: () => (isPaused ? tellRedis(fleet, ['CLIENT UNPAUSE']) : node?.thaw()),
    }
  },
}
