import { test } from 'tap'
import { startRedis } from '../../sandbox/redis-process.ts'
import { Changeable } from '../../src/config/changing.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { fillRedis } from '../support/redis/full-redis.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { reachableSettings, resultsOf, runProgram as run } from '../support/server/check-run.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'
import { storeClient } from '../support/redis/store-client.ts'

/** Without the warning of a Redis that forgets everything at a restart. */
const DURABLE = ['--appendonly', 'yes']

await test('--check: a warning for a Redis that evicts, exit code 69 for a replica', async (t) => {
  const settings = await reachableSettings(t)
  for (const [policy, maxmemory] of [
    ['allkeys-lru', '100mb'],
    ['volatile-ttl', '100mb'],
    ['volatile-ttl', '0'],
  ] as const) {
    const redis = await testRedis(t, ['--maxmemory', maxmemory, '--maxmemory-policy', policy])
    const warned = await run({ ...settings, REDIS_URL: redis.url })
    t.equal(warned.exitCode, 0)
    t.match(resultsOf(warned, 'REDIS_URL'), [new RegExp(`^warning: .*may drop sessions \\(${policy}\\)$`)])
  }

  const { port } = new URL((await testRedis(t)).url)
  const replica = await startRedis(['--replicaof', `127.0.0.1 ${port}`])
  t.teardown(() => replica.close())
  const refused = await run({ ...settings, REDIS_URL: replica.url })
  t.equal(refused.exitCode, 69)
  t.match(resultsOf(refused, 'REDIS_URL'), [/^failed: .*a replica, which takes no writes$/])
})

await test('--check and a start warn of commands that a user of Redis may not run', async (t) => {
  const redis = await testRedis(t, DURABLE)
  await askRedis(redis, ['ACL', 'SETUSER', 'poor', 'on', '>secret', '~*', '&*', '+@all', '-getdel', '-pexpire'])
  const url = redis.url.replace('redis://', 'redis://poor:secret@')
  const check = await run({ ...(await reachableSettings(t)), REDIS_URL: url })
  t.equal(check.exitCode, 0)
  t.match(resultsOf(check, 'REDIS_URL'), [/^ok: /, /^warning: \S+ forbids GETDEL, PEXPIRE to this user$/])
  t.match(check.stdout, /^ +Allow the user of REDIS_URL to run them \(ACL\)/m)

  const warnings: unknown[] = []
  const log = {
    error: () => undefined,
    info: () => undefined,
    warn: (...line: unknown[]) => void warnings.push(line),
  }
  const store = RedisStore.connect(new Changeable(url), log)
  t.teardown(() => store.close())
  await until(() => warnings.length > 0, 'a warning at the start')
  t.match(warnings, [[{ commands: ['GETDEL', 'PEXPIRE'], advice: /ACL/ }, 'the session store forbids commands']])
})

await test('--check: exit code 0 with a warning and a remedy for a Redis that is full or almost full', async (t) => {
  const settings = await reachableSettings(t)
  const redis = await testRedis(t, DURABLE)
  const full = await fillRedis(t, redis.url)
  let check = await run({ ...settings, REDIS_URL: redis.url })
  // The buffers of Redis's connections grow and shrink, so it may have room for a moment.
  await until(async () => {
    await full.fillUp()
    check = await run({ ...settings, REDIS_URL: redis.url })
    return resultsOf(check, 'REDIS_URL').some((line) => line.includes('(OOM)'))
  }, '--check is refused its write')
  t.equal(check.exitCode, 0, 'users who are logged in are not affected')
  const [refused, nearly, ...more] = resultsOf(check, 'REDIS_URL')
  t.match(refused, /^warning: .* refuses writes \(OOM\)$/)
  t.match(nearly, /^warning: .* \d{2,3} % of its maxmemory$/)
  t.same(more, [])
  t.match(
    check.stdout,
    /^ +Redis is full, so nobody can log in, and calls with an Idempotency-Key get 503.*Raise maxmemory/m,
  )
  t.notMatch(check.stdout, /TLS \(rediss/)

  const client = await storeClient(t, { redis })
  const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
  for (const [share, expected] of [
    [0.94, /^warning: .* uses 9\d % of its maxmemory$/],
    [0.5, /^ok: .* a master that takes writes$/],
  ] as const) {
    await client.configSet('maxmemory', String(Math.round(used / share)))
    t.match(resultsOf(await run({ ...settings, REDIS_URL: redis.url }), 'REDIS_URL'), [expected])
  }
})

await test('--check: exit code 69 and a remedy for a Redis that refuses all writes', async (t) => {
  const settings = await reachableSettings(t)
  const redis = await testRedis(t, ['--min-replicas-to-write', '1'])
  const check = await run({ ...settings, REDIS_URL: redis.url })
  t.equal(check.exitCode, 69)
  t.match(resultsOf(check, 'REDIS_URL'), [/^failed: .* refuses writes \(NOREPLICAS\)$/])
  t.match(check.stdout, /^ +Too few replicas/m)
})
