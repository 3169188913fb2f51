import { test } from 'tap'
import { besideKey } from '../../src/store/keys.ts'
import { FIRST_REPORT } from '../support/budget/first-report.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

const MINUTE_MS = 60_000
const soon = (): number => Date.now() + MINUTE_MS

await test('a Redis that takes no writes at all counts as interrupted, and a full one does not', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  const longMs = 1000
  await until(() => store.availableForMs('k') > longMs)
  await askRedis(redis, ['CONFIG', 'SET', 'min-replicas-to-write', '1'])
  await until(() => store.availableForMs('k') < longMs, 'no command of this process was refused')
  await askRedis(redis, ['CONFIG', 'SET', 'min-replicas-to-write', '0'])
  await until(() => store.availableForMs('k') > longMs)
  await askRedis(redis, ['CONFIG', 'SET', 'maxmemory', '1'])
  await t.rejects(store.create('new', 'v', soon()), StoreUnavailable)
  t.ok(store.availableForMs('k') > longMs, 'what must be written then is written')
})

await test('a full Redis takes no new session, but whatever keeps sessions going, ends them and counts their calls', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  const windows = [{ windowMs: 60_000, ceilings: { orders: 10, otps: 8, reads: 5 } }]
  const ledger = await store.openLedger('default', { windows, leaseMs: 5000, marginMs: 1000, bucketMs: 100 })
  const document = await store.openRefusals('default', () => undefined)
  t.teardown(() => document.close())
  const index = await store.openIndex()
  for (const id of ['a', 'b']) await index.add('subject', { id, value: 'v', expiresAt: soon() }, 0)
  for (const key of ['one', 'two']) await store.create(key, 'v', soon())

  // It has far more than that already, so it has no room for anything, whatever is removed.
  await askRedis(redis, ['CONFIG', 'SET', 'maxmemory', '1'])
  await t.rejects(store.create('new', 'v', soon()), StoreUnavailable)
  await t.rejects(store.count('starts', 1, MINUTE_MS), StoreUnavailable)
  t.equal(await store.count('counter', 1, MINUTE_MS, true), 1)
  t.equal(await store.count('counter', 1, MINUTE_MS, true), 2)
  t.ok(await store.replace('one', 'v', 'w', soon()))
  t.ok(await store.lock('lock', 'owner', MINUTE_MS))
  t.ok(await store.removeIf('lock', 'owner'))
  t.match(await store.extend('one', soon() + 1000), { value: 'w' })
  const tombstone = {
    key: besideKey('one', 'tombstone'),
    leftKey: besideKey('one', 'left'),
    value: 'logout',
    expiresAt: soon(),
  }
  t.equal(await store.bury('one', tombstone), 'logout w')
  t.match(await store.readUntracked(besideKey('one', 'tombstone')), { value: 'logout' })
  t.ok(await store.remove('two'))
  await index.end('subject', ['a'])
  t.match(await index.look('subject', 'a'), { isListed: false })
  t.equal((await index.endAll('subject')).length, 2)
  t.equal((await index.endIssued('subject', 'issued', 7)).length, 2)
  t.match(await index.look('subject', 'b'), { endedAgoMs: Number, endedUntil: { issued: 7 } })
  t.ok(await store.limits.claim({ key: 'permits', holder: 'one', count: 1 }, 1))
  t.notOk(await store.limits.claim({ key: 'permits', holder: 'two', count: 1 }, 1))
  await store.limits.hold([{ key: 'permits', holder: 'one', count: 0 }])
  t.match(await store.limits.leaseCalls('calls', 10), { calls: 5 })
  t.equal(await store.limits.enqueue('queue', 1000), 0)
  t.ok(await document.write('', 'text', 1000))
  t.match(await ledger.settle(FIRST_REPORT), { is: 'settled' })
})

await test('a full Redis is warned of until there is room again, whatever it takes meanwhile', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  const isWarnedOf = (): boolean => store.warnings().some((warning) => warning.includes('(OOM)'))
  for (const key of ['one', 'two']) await store.create(key, 'v', soon())
  await askRedis(redis, ['CONFIG', 'SET', 'maxmemory', '1'])
  await until(isWarnedOf, 'a probe finds that it is full')
  const beside = { key: besideKey('one', 'tombstone'), leftKey: besideKey('one', 'left'), value: 'logout' }
  const taken: Record<string, () => Promise<unknown>> = {
    read: () => store.read('one'),
    extend: () => store.extend('one', soon() + 1000),
    replace: () => store.replace('one', 'v', 'w', soon()),
    lock: () => store.lock('lock', 'owner', MINUTE_MS),
    removeIf: () => store.removeIf('lock', 'owner'),
    count: () => store.count('counter', 1, MINUTE_MS, true),
    bury: () => store.bury('one', { ...beside, expiresAt: soon() }),
    remove: () => store.remove('two'),
  }
  for (const [name, take] of Object.entries(taken)) {
    t.ok(await take(), name)
    t.ok(isWarnedOf(), `after ${name}`)
  }
  await askRedis(redis, ['CONFIG', 'SET', 'maxmemory', '0'])
  await until(() => !isWarnedOf(), 'the next probe finds room')
})
