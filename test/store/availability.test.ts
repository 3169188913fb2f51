import { test } from 'tap'
import type { RedisStore } from '../../src/store/redis-store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'

const why = (store: RedisStore): string => store.condition().why.join(' ')

await test('a store on a replica says so for as long as it lasts', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  await askRedis(redis, ['REPLICAOF', '127.0.0.1', '1'])
  await until(() => why(store).includes('Name the master'))
  t.equal(store.condition().share, 0)
  await askRedis(redis, ['REPLICAOF', 'NO', 'ONE'])
  await until(() => store.unavailableSince() === undefined)
})

await test('a store that takes no writes is unavailable, and goes on to read what it can', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  await store.create('k', 'v', Date.now() + 60_000)
  await askRedis(redis, ['CONFIG', 'SET', 'min-replicas-to-write', '1'])
  await until(() => why(store).startsWith('NOREPLICAS. '))
  t.match(await store.read('k'), { value: 'v' })
  t.match(await store.extend('k', Date.now() + 90_000), { value: 'v' })
  await askRedis(redis, ['CONFIG', 'SET', 'min-replicas-to-write', '0'])
  await until(() => store.unavailableSince() === undefined)
})

await test('a full store is available, with a warning', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  await askRedis(redis, ['CONFIG', 'SET', 'maxmemory', '1'])
  await until(() => store.warnings().some((warning) => warning.includes('(OOM)')))
  t.same([store.unavailableSince(), store.condition().share], [undefined, 1])
})

await test('a probe writes once a minute, leaves nothing behind, and evicts nothing', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  await until(() => store.availableForMs('k') > 2500)
  const stats = String(await askRedis(redis, ['INFO', 'all']))
  t.match(stats, /cmdstat_set:calls=1,/)
  t.match(stats, /rdb_changes_since_last_save:2\r/, 'SET, DEL')
  t.equal(await askRedis(redis, ['DBSIZE']), 0)
  t.notMatch(stats, /errorstat_WRONGTYPE/)
})
