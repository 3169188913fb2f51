import { test } from 'tap'
import { probeRedis } from '../../src/store/probe.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'
import { startWorld } from '../support/world.ts'
import { exactly } from '../support/exactly.ts'

await test('--check and /readyz warn of replicas that do not fit IDEMPOTENCY_REPLICAS, and of a Redis without appendonly', async (t) => {
  const master = await testRedis(t)
  await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
  await until(async () => String(await askRedis(master, ['INFO', 'replication'])).includes('connected_slaves:1'))
  const warned = async (replicas: number): Promise<string> =>
    (await probeRedis(master.url, { timeoutMs: 5000, replicas, hasSubjects: true }))
      .map(({ is, message }) => `${is}: ${message}`)
      .join('\n')
  t.match(
    await warned(0),
    /warning: .*Set appendonly yes.*\nwarning: .*replicas of Redis: 1; IDEMPOTENCY_REPLICAS: 0\. .* could be sent twice/,
  )
  const one = await warned(1)
  t.match(one, /warning: .*Set appendonly yes/)
  t.notMatch(one, /IDEMPOTENCY_REPLICAS/)
  t.match(await warned(2), /warning: .*replicas of Redis: 1; IDEMPOTENCY_REPLICAS: 2\. Calls .* are refused/)
  await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
  await until(async () => String(await askRedis(master, ['INFO', 'replication'])).includes('connected_slaves:2'))
  await askRedis(master, ['CONFIG', 'SET', 'appendonly', 'yes'])
  const two = await warned(1)
  t.match(two, /warning: .*replicas of Redis: 2; IDEMPOTENCY_REPLICAS: 1\. .* could be sent twice/)
  t.notMatch(two, /appendonly/)

  await askRedis(master, ['CONFIG', 'SET', 'appendonly', 'no'])
  await askRedis(master, ['ACL', 'SETUSER', 'default', '-wait'])
  t.match(await warned(1), /forbids WAIT to this user/)
  await askRedis(master, ['ACL', 'SETUSER', 'default', '+wait'])
  const store = await connectedStore(t, master.url)
  t.same(store.warnings(), [])
  store.watchReplication(1)
  await until(() => store.warnings().length === 2)
  t.match(store.warnings(), exactly(/Set appendonly yes/, /replicas of Redis: 2/))
})

await test('/readyz warns of a Redis without appendonly by default, too', async (t) => {
  const { server } = await startWorld(t, { redis: true })
  const warnings = async (): Promise<unknown[]> =>
    ((await (await fetch(`${server.opsUrl}/readyz`)).json()) as { warnings: unknown[] }).warnings
  await until(async () => (await warnings()).length > 0)
  t.match(await warnings(), exactly(/Set appendonly yes/))
})
