import { test, type Test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import type { RedisStore } from '../../src/store/redis-store.ts'
import { StoreUnavailable, type ConfirmableWrites } from '../../src/store/store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'
import { exactly } from '../support/exactly.ts'

interface Replicated {
  readonly master: RedisProcess
  readonly replica: RedisProcess
  readonly store: RedisStore
  readonly writes: ConfirmableWrites
  /** What was logged, and by the store's own name for it what failed. */
  readonly events: string[]
}

const expiresAt = (): number => Date.now() + 60_000

/** A master with a replica that is online, and a store whose writes the replica must confirm. */
async function replicated(t: Test): Promise<Replicated> {
  const master = await testRedis(t, ['--repl-diskless-sync-delay', '0'])
  const replica = await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
  const events: string[] = []
  const note = (_details: object, message: string): void => void events.push(message)
  const store = await connectedStore(t, master.url, { error: note, warn: note, info: note })
  // A new replica confirms nothing for up to a second.
  await until(async () => (await store.isReplicated('any')) === true)
  const count = (kind: string): void => void events.push(kind)
  store.observe({ asked: () => undefined, refusedWrite: count, failed: count })
  return { master, replica, store, writes: await store.openConfirmed(1), events }
}

const connectionsOf = async (redis: RedisProcess): Promise<number> =>
  String(await askRedis(redis, ['CLIENT', 'LIST', 'TYPE', 'normal']))
    .trim()
    .split('\n').length

const waits = async (redis: RedisProcess): Promise<number> =>
  Number(/cmdstat_wait:calls=(\d+)/.exec(String(await askRedis(redis, ['INFO', 'commandstats'])))?.[1] ?? 0)

await test('a write that a replica confirmed is on the replica, and writes that come together share few WAITs', async (t) => {
  const { master, replica, writes } = await replicated(t)
  t.equal(await writes.create('key', 'first', expiresAt()), true)
  t.equal(await askRedis(replica, ['GET', 'key']), 'first')
  t.equal(await writes.create('key', 'second', expiresAt()), false)
  t.equal(await writes.replace('key', 'other', 'third', expiresAt()), false)
  t.equal(await writes.replace('key', 'first', 'third', expiresAt()), true)
  t.equal(await askRedis(replica, ['GET', 'key']), 'third')

  const before = await waits(master)
  const keys = Array.from({ length: 200 }, (_, index) => `key ${index}`)
  const created = await Promise.all(keys.map((key) => writes.create(key, 'v', expiresAt())))
  t.ok(created.every(Boolean))
  t.ok((await waits(master)) - before <= 3)
  t.equal(await askRedis(replica, ['EXISTS', ...keys]), 200)
})

await test('without a confirmation a write fails, those after it fail at once, and a probe ends that', async (t) => {
  const { master, replica, store, writes, events } = await replicated(t)
  t.equal(await writes.create('before', 'v', expiresAt()), true)
  replica.process.kill('SIGSTOP')
  t.teardown(() => replica.process.kill('SIGCONT'))
  const first = writes.create('first', 'v', expiresAt())
  t.equal(await store.create('elsewhere', 'v', expiresAt()), true, 'other writes do not wait')
  await t.rejects(first, StoreUnavailable)
  t.match(store.warnings(), exactly(/refused.*0 of 1 replicas confirmed/))

  const before = await waits(master)
  const startedAt = performance.now()
  for (let count = 0; count < 20; count++) await t.rejects(writes.create('at once', 'v', expiresAt()), StoreUnavailable)
  // Each would wait for 500 ms, and a probe is made every second.
  t.ok((await waits(master)) - before <= 2 + (performance.now() - startedAt) / 1000)
  t.equal(await askRedis(master, ['EXISTS', 'at once']), 0, 'nothing is written meanwhile')

  replica.process.kill('SIGCONT')
  await until(() => events.some((message) => message.includes('accepted again')))
  t.equal(await writes.create('after', 'v', expiresAt()), true)
  t.notMatch(store.warnings(), [/refused/])
  t.equal(events.filter((event) => event === 'unconfirmed').length, 21)
})

await test('a server that is demoted confirms nothing, though a replica of it is connected', async (t) => {
  const { master, writes } = await replicated(t)
  t.equal(await writes.create('before', 'v', expiresAt()), true)
  const other = await testRedis(t)
  await askRedis(master, ['REPLICAOF', '127.0.0.1', String(other.port)])
  await t.rejects(writes.create('after', 'v', expiresAt()), StoreUnavailable)
})

await test('a server that was demoted and promoted again since the connection was opened confirms nothing', async (t) => {
  const { master, store, writes, events } = await replicated(t)
  t.equal(await writes.create('before', 'v', expiresAt()), true)
  await askRedis(master, ['REPLICAOF', '127.0.0.1', '1'])
  await askRedis(master, ['REPLICAOF', 'NO', 'ONE'])
  await until(async () => String(await askRedis(master, ['INFO', 'replication'])).includes('state=online'))
  // The store may have asked the server for its role in between, and then it writes nothing until it has asked again.
  await until(async () => (await store.isReplicated('any')) === true)
  await t.rejects(writes.create('after', 'v', expiresAt()), StoreUnavailable)
  await until(() => events.some((message) => message.includes('accepted again')))
  t.equal(await writes.create('later', 'v', expiresAt()), true)
})

await test('a master that is stopped makes writes fail in time, and its connection is opened anew', async (t) => {
  const { master, writes, events } = await replicated(t)
  t.equal(await writes.create('before', 'v', expiresAt()), true)
  master.process.kill('SIGSTOP')
  await t.rejects(writes.create('stopped', 'v', expiresAt()), StoreUnavailable)
  master.process.kill('SIGCONT')
  await until(() => events.some((message) => message.includes('accepted again')))
  t.equal(await writes.create('after', 'v', expiresAt()), true)
})

await test('nothing is opened before the first write, and one connection afterwards', async (t) => {
  const { master, writes } = await replicated(t)
  const before = await connectionsOf(master)
  await writes.create('key', 'v', expiresAt())
  t.equal(await connectionsOf(master), before + 1)
  await Promise.all(Array.from({ length: 50 }, (_, index) => writes.create(`key ${index}`, 'v', expiresAt())))
  t.equal(await connectionsOf(master), before + 1)
})

await test('a warning says why no connection can be made ready for writes that replicas confirm', async (t) => {
  const { master, store, writes } = await replicated(t)
  await askRedis(master, ['ACL', 'SETUSER', 'default', '-info'])
  await t.rejects(writes.create('key', 'v', expiresAt()), StoreUnavailable)
  t.match(store.warnings().join(' '), /refused.*\(NOPERM\)/)
})

await test('a write that the server refuses is counted, with the reason', async (t) => {
  const { master, writes, events } = await replicated(t)
  await askRedis(master, ['CONFIG', 'SET', 'maxmemory', '1'])
  await t.rejects(writes.create('key', 'v', expiresAt()), StoreUnavailable)
  t.ok(events.includes('oom'), events.join())
})
