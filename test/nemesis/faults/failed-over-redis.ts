import { until } from '../../support/time/until.ts'
import type { Fault } from '../fault.ts'
import { WRITES_ARE_LOST, oneOf, withoutRedis } from '../whom.ts'

/** The Sentinels, or the other masters, need four seconds to notice, and instances three to follow. */
const FOLLOWED_MS = 12_000
/** A machine that is busy takes a while to copy everything to all replicas. */
const WHOLE_MS = 180_000

/** A replica takes over from a master. */
export const failedOverRedis: Fault = {
  name: 'failed-over-redis',
  sentence: 'A master of Redis dies, hangs or steps down, and one of its replicas takes over.',
  fits: ({ redis }) => redis !== 'single',
  lastsMs: { least: 9000, most: 14_000 },
  async apply({ redis }, random) {
    await until(() => redis.isWhole(), 'what an earlier fault has broken is whole again', WHOLE_MS)
    const master = oneOf(await redis.masters(), random)
    const how = oneOf(['dies', 'hangs', 'steps down', 'is replaced'] as const, random)
    if (how === 'dies') await master.kill()
    else if (how === 'hangs') master.freeze()
    else await redis.replace(master, how === 'is replaced')
    return {
      note: `the master at ${master.port} ${how}`,
      touches: [...withoutRedis(), ...WRITES_ARE_LOST],
      settleMs: FOLLOWED_MS,
      async heal() {
        if (how === 'dies') await master.restart()
        else if (how === 'hangs') master.thaw()
        await until(() => redis.isWhole(), 'all servers of Redis are back', WHOLE_MS)
      },
    }
  },
}
