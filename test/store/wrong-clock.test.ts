import Fastify from 'fastify'
import { test } from 'tap'
import { readiness } from '../../src/ops/ops-listener.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { testRedis } from '../support/server/test-server.ts'
import { clockAhead, wrongClock } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

for (const aheadMs of [-3_600_000, 3_600_000]) {
  await test(`locks and counts last as long although the clock here differs by ${aheadMs} ms from that of Redis`, async (t) => {
    const { url } = await testRedis(t)
    const store = await connectedStore(t, url)
    const client = await storeClient(t, { redis: { url } })
    wrongClock(t)(aheadMs)
    t.same([await store.lock('lock', 'one', 10_000), await store.lock('lock', 'other', 10_000)], [true, false])
    t.same([await store.count('count', 1, 10_000), await store.count('count', 1, 10_000)], [1, 2])
    for (const key of ['lock', 'count']) {
      const leftMs = await client.pTTL(key)
      t.ok(leftMs > 0 && leftMs <= 10_000, `${key}: ${leftMs} ms`)
    }
  })
}

await test('an outage of the store lasts by no clock that is set', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  const server = Fastify()
  t.teardown(() => server.close())
  await server.listen()
  const { reasons } = readiness(server, store, 60_000)
  const set = wrongClock(t)
  await redis.close()
  await until(() => store.unavailableSince() !== undefined)
  set(3_600_000)
  t.same(reasons(), [], 'the outage has just begun')
  set(-7_200_000)
  clockAhead(t)(60_000)
  t.match(reasons(), exactly(/^session store unavailable/))
})
