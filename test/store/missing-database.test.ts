import { ErrorReply } from '@redis/client'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { probeRedis } from '../../src/store/probe.ts'
import { mayLackDatabase } from '../../src/store/links/redis-link.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { QUIET } from '../support/redis/connected-store.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'

await test('--check and a start name a database of REDIS_URL that Redis has not got', async (t) => {
  const redis = await testRedis(t)
  const url = `${redis.url}/99`
  t.match(await probeRedis(url, { timeoutMs: 5000, replicas: 0, hasSubjects: true }), [
    {
      is: 'failed',
      message: /^127\.0\.0\.1:\d+ may not have this database \(ERR\)$/,
      advice: /^Check the number at the end of REDIS_URL: /,
    },
  ])
  t.match(await probeRedis(`${redis.url}/15`, { timeoutMs: 5000, replicas: 0, hasSubjects: true }), [{ is: 'ok' }])

  const warnings: object[] = []
  const store = RedisStore.connect(new Changeable(url), { ...QUIET, warn: (details) => void warnings.push(details) })
  t.teardown(() => store.close())
  await until(() => warnings.length > 0, 'a warning at the start')
  t.same(warnings, [{ reason: 'ERR: the database at the end of REDIS_URL may not exist' }])
})

await test('an error of a server is not put down to its database where REDIS_URL names none, or database 0', (t) => {
  for (const [end, expected] of [
    ['', false],
    ['/', false],
    ['/0', false],
    ['/1', true],
  ] as const) {
    t.equal(mayLackDatabase(new ErrorReply('ERR anything'), { url: `redis://host${end}` }), expected, end)
  }
  t.equal(mayLackDatabase(new ErrorReply('WRONGPASS anything'), { url: 'redis://host/1' }), false)
  t.end()
})
