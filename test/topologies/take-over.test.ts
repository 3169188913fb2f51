import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { replicatedIn } from '../nemesis/take-over.ts'
import { durableCluster, durableSentinel } from '../support/redis/durable-topologies.ts'
import { askRedis, replicationOf } from '../support/redis/topologies.ts'
import { untilSlow } from '../support/time/until.ts'

await test('A replica that takes over from a dead master lacks what came while it stood still, and has what it had confirmed', async (t) => {
  const redis = await durableSentinel(t, 2)
  const servers = await replicatedIn({ redis })
  const { master, freeze, takeOver, comeBack } = servers
  t.equal(await askRedis(master, ['SET', 'before', 'v']), 'OK')
  await delay(100)
  freeze()
  t.equal(await askRedis(master, ['SET', 'meanwhile', 'v']), 'OK')
  await takeOver()
  const [next] = await redis.masters()
  t.ok(next !== undefined && next !== master)
  t.same(next && (await askRedis(next, ['MGET', 'before', 'meanwhile'])), ['v', null])
  await comeBack()
  t.ok(await redis.isWhole())
  t.same(await askRedis(master, ['MGET', 'before', 'meanwhile']), ['v', null], 'it has what its successor has')
})

await test('A master that is taken out of a Cluster goes on running, and the others are whole without it', async (t) => {
  const redis = await durableCluster(t)
  const [removed] = await redis.masters()
  if (removed === undefined) throw new Error('no master')
  await redis.remove?.(removed)
  t.equal(redis.nodes.length, 5)
  await untilSlow(() => redis.isWhole(), 'the others are whole')
  t.equal((await redis.masters()).length, 2)
  t.match(await replicationOf(removed), /role:master/)
  t.same(await askRedis(removed, ['CLUSTER', 'SLOTS']), [])
})
