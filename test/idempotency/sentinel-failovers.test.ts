import { test } from 'tap'
import { durableSentinel } from '../support/redis/durable-topologies.ts'
import { stormThroughFailovers } from './failover-storm.ts'

await test('2,000 keys are sent at most once through ten failovers of Sentinel', { timeout: 600_000 }, async (t) => {
  await stormThroughFailovers(t, await durableSentinel(t, 2), { IDEMPOTENCY_REPLICAS: '2' })
})
