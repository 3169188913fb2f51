import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { startRedis } from '../../sandbox/redis-process.ts'
import type { CheckResult } from '../../src/config/setting-rule.ts'
import { ADVICE } from '../../src/store/servers/causes.ts'
import { probeRedis } from '../../src/store/probe.ts'
import { DOCUMENTED_COMMANDS, withDocumentedRights } from '../support/redis/rights.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

const USES = { timeoutMs: 5000, replicas: 1, hasSubjects: true }

/** Without any of these nobody, or no user with a subject, could log in and trade. */
const NEEDS: ReadonlySet<string> = new Set(
  'get set del mget incrby pexpireat pexpiretime hget hset hdel hgetall eval time client|tracking'.split(' '),
)

const textOf = (results: readonly CheckResult[]): string =>
  results.map(({ is, message, advice = '' }) => `${is}: ${message} (${advice})`).join('\n')

await test('--check names each command that is missing, and fails for those without which nothing works', async (t) => {
  const redis = await testRedis(t, ['--appendonly', 'yes'])
  const url = await withDocumentedRights({ url: redis.url, nodes: [redis] })
  t.match(await probeRedis(url, USES), [{ is: 'ok', message: /is \w+ \d+\.\d+\.\d+, a master that takes writes$/ }, {}])
  for (const name of DOCUMENTED_COMMANDS) {
    // Only with a database.
    if (name === 'select') continue
    await askRedis(redis, ['ACL', 'SETUSER', 'bff', `-${name}`])
    const results = await probeRedis(url, USES)
    await askRedis(redis, ['ACL', 'SETUSER', 'bff', `+${name}`])
    const word = name.replace('|', ' ').toUpperCase()
    t.equal(results[0]?.is, NEEDS.has(name) ? 'failed' : 'ok', word)
    t.match(textOf(results), new RegExp(`(no right to|forbids) ([A-Z ,]+, )?${word}[, ]`))
  }
})

await test('--check names all that is missing to a user who may run no script either, and leaves no key behind', async (t) => {
  const redis = await testRedis(t)
  const url = await withDocumentedRights({ url: redis.url, nodes: [redis] })
  await askRedis(redis, ['ACL', 'SETUSER', 'bff', '-@all', '+set', '+incrby', '+hset', '+info', '+ping'])
  const text = textOf(await probeRedis(url, USES))
  t.match(text, /no right to GET, MGET, DEL, PEXPIRETIME, PEXPIREAT, EVAL, TIME, HGET, HGETALL, HDEL, CLIENT TRACKING /)
  t.match(text, /forbids GETDEL, HDEL, PEXPIRE to this user/)
  await askRedis(redis, ['ACL', 'SETUSER', 'bff', '-@all'])
  t.match(
    textOf(await probeRedis(url, USES)),
    /no right to GET, MGET, SET, DEL, /,
    'it is not the keys that are missing',
  )
  await until(async () => Number(await askRedis(redis, ['DBSIZE'])) === 0, 'no key is left')
})

for (const [rights, expected] of [
  ['resetkeys ~{bff:1:*', /no right to keys that begin with bff:1: \(Give the user/],
  ['resetkeys ~bff:1:*', /no right to keys that begin with \{bff:1: \(Give the user/],
  ['resetkeys %R~bff:1:* %R~{bff:1:*', /no right to .*SET, DEL, PEXPIREAT, INCRBY, EVAL/],
] as const) {
  await test(`--check names the keys for a user with ${rights}`, async (t) => {
    const redis = await testRedis(t)
    const url = await withDocumentedRights({ url: redis.url, nodes: [redis] })
    await askRedis(redis, ['ACL', 'SETUSER', 'bff', ...rights.split(' ')])
    const results = await probeRedis(url, USES)
    t.equal(results[0]?.is, 'failed')
    t.match(textOf(results), expected)
  })
}

await test('--check warns of channels that a user may not use, and needs no INFO and no ROLE', async (t) => {
  const redis = await testRedis(t)
  const url = await withDocumentedRights({ url: redis.url, nodes: [redis] })
  await askRedis(redis, ['ACL', 'SETUSER', 'bff', 'resetchannels', '+@all', '-@dangerous'])
  const results = await probeRedis(url, USES)
  t.equal(results[0]?.is, 'ok')
  t.match(textOf(results), /warning: \S+ forbids .*PUBLISH, SUBSCRIBE to this user/)
  t.match(textOf(results), /warning: \S+ forbids .*INFO/)
})

await test('--check names the cause for a replica, and for commands that have other names', async (t) => {
  const master = await testRedis(t)
  const replica = await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
  t.match(await probeRedis(replica.url, USES), [{ is: 'failed', message: /a replica, which takes no writes$/ }])
  const other = await startRedis(['--rename-command', 'EVAL', 'eval-of-the-operator'])
  t.teardown(() => other.close())
  t.match(await probeRedis(other.url, USES), [
    { is: 'failed', message: /but it does not know EVAL$/, advice: ADVICE['UNKNOWN'] },
  ])
  const untracked = await startRedis(['--rename-command', 'CLIENT', 'client-of-the-operator'])
  t.teardown(() => untracked.close())
  t.match(await probeRedis(untracked.url, USES), [
    { is: 'failed', message: /no right to CLIENT TRACKING$/, advice: /would not learn of a logout/ },
  ])
})

await test('--check names a Redis that is still loading its data', async (t) => {
  const redis = await testRedis(t, ['--enable-debug-command', 'yes'])
  await askRedis(redis, ['DEBUG', 'POPULATE', '2000'])
  const slowly = ['key-load-delay', '1000', 'loading-process-events-interval-bytes', '1024']
  await askRedis(redis, ['CONFIG', 'SET', ...slowly])
  void askRedis(redis, ['DEBUG', 'RELOAD'])
  let results: readonly CheckResult[] = []
  while (results[0]?.is !== 'failed') results = await probeRedis(redis.url, USES)
  t.match(textOf(results), /LOADING.*still loading/)
})

await test('--check names a Redis that runs a script for too long, and one that wants a password', async (t) => {
  const busy = await testRedis(t, ['--busy-reply-threshold', '1'])
  void askRedis(busy, ['EVAL', 'while true do end', '0'])
  let results: readonly CheckResult[] = []
  while (results[0]?.is !== 'failed') results = await probeRedis(busy.url, USES)
  t.match(results, [{ message: /\(BUSY\)$/, advice: ADVICE['BUSY'] }])
  await askRedis(busy, ['SCRIPT', 'KILL'])
  const closed = await testRedis(t, ['--requirepass', 'a-password'])
  t.match(await probeRedis(closed.url, USES), [{ is: 'failed', message: /\(NOAUTH\)$/, advice: ADVICE['NOAUTH'] }])
})

await test('docs/compatibility.md has each cause that /readyz and --check name', (t) => {
  const text = readFileSync(new URL('../../docs/compatibility.md', import.meta.url), 'utf8')
  for (const code of Object.keys(ADVICE)) t.match(text, new RegExp(`\`${code === 'SILENT' ? 'silence' : code}[\`:]`))
  t.end()
})
