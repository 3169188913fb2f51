import { test } from 'tap'
import { durableCluster } from '../support/redis/durable-topologies.ts'
import { stormThroughFailovers } from './failover-storm.ts'

await test('2,000 keys are sent at most once through ten failovers of a Cluster', { timeout: 600_000 }, async (t) => {
  await stormThroughFailovers(t, await durableCluster(t), {})
})
