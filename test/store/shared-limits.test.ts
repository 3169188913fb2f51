import { test } from 'tap'
import { besideKey } from '../../src/store/keys.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { testRedis } from '../support/server/test-server.ts'
import { storeClient } from '../support/redis/store-client.ts'

const PERMITS = besideKey('session:a', 'relays')

await test('the shared limits leave no key to track', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  const client = await storeClient(t, { redis })
  const changed: unknown[] = []
  store.onChange((key) => changed.push(key))
  t.equal(await store.limits.claim({ key: PERMITS, holder: 'a', count: 2 }, 2), true)
  t.equal(await store.limits.claim({ key: PERMITS, holder: 'b', count: 1 }, 2), false)
  await store.limits.hold([{ key: PERMITS, holder: 'a', count: 0 }])
  t.ok((await store.limits.leaseCalls(besideKey('session:a', 'calls'), 1000)).calls > 0)
  t.ok((await store.limits.enqueue('queue', 1000)) >= 0)
  t.match(await client.info('stats'), /tracking_total_keys:[01]\r/, 'none but that of the probe')
  for (const key of [PERMITS, besideKey('session:a', 'calls'), 'queue']) await client.del(key)
  await store.read('after')
  t.notOk(changed.includes(PERMITS), 'another writer of these keys is not reported')
})
