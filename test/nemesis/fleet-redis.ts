import type { Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { DurableRedis } from '../support/redis/durable-redis.ts'
import { durableCluster, durableSentinel, type DurableTopology } from '../support/redis/durable-topologies.ts'
import { mastersOf } from '../support/redis/topologies.ts'
import type { FleetPlan } from './plan.ts'

/** Starts the Redis of a fleet, whose servers keep their data when they are killed. It ends with the test. */
export async function fleetRedis(t: Test, kind: FleetPlan['redis']): Promise<DurableTopology> {
  if (kind === 'sentinel') return durableSentinel(t, 2)
  if (kind === 'cluster') return durableCluster(t)
  const redis = await DurableRedis.start(t, await freePort(), ['enable-protected-configs local'])
  const masters = (): Promise<DurableRedis[]> => mastersOf([redis])
  return {
    url: redis.url,
    nodes: [redis],
    masters,
    isWhole: async () => (await masters()).length === 1,
    replace: () => Promise.reject(new Error('no replica can take over')),
  }
}
