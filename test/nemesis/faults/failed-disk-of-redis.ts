import { askRedis } from '../../support/redis/topologies.ts'
import { until } from '../../support/time/until.ts'
import type { Fault } from '../fault.ts'
import { BUDGET_IS_NEW, tellRedis, withoutRedis } from '../whom.ts'

/** A folder where nobody can write a file. */
const NOWHERE = '/proc'

/** The disk of Redis fails. */
export const failedDiskOfRedis: Fault = {
  name: 'failed-disk-of-redis',
  sentence: 'Redis cannot write its snapshot, and takes no writes (MISCONF).',
  fits: ({ redis }) => redis === 'single',
  async apply(fleet) {
    const answer = await askRedis(fleet.redis, ['CONFIG', 'GET', 'dir'])
    const { dir = '.' } = { ...(answer as { dir?: string } | undefined) }
    await tellRedis(fleet, [['CONFIG', 'SET', 'save', '3600 1'], `CONFIG SET dir ${NOWHERE}`, 'BGSAVE'])
    await until(async () =>
      String(await askRedis(fleet.redis, ['INFO', 'persistence'])).includes('last_bgsave_status:err'),
    )
    return {
      note: 'Redis cannot write its snapshot',
      touches: [...withoutRedis(), BUDGET_IS_NEW],
      settleMs: 3000,
      heal: () => tellRedis(fleet, [`CONFIG SET dir ${dir}`, ['CONFIG', 'SET', 'save', ''], 'BGSAVE']),
    }
  },
}
