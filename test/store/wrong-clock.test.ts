import { test } from 'tap'
import { connectedStore } from '../support/redis/connected-store.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { testRedis } from '../support/server/world.ts'
import { wrongClock } from '../support/time/clock-ahead.ts'

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
