import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { startRedis } from '../../sandbox/redis-process.ts'
import { Changeable } from '../../src/config/changing.ts'
import { LEDGER } from '../../src/store/ledger/ledger.ts'
import { LinkHealth } from '../../src/store/servers/link-health.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { newConnection } from '../../src/store/links/connection.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { connectedStore, QUIET } from '../support/redis/connected-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'
import { sharedStoreContract, storeContract } from './store-contract.ts'
import { earlyInAMinute } from '../support/time/clock-minute.ts'
import { until } from '../support/time/until.ts'

/** Timers that keep the process alive. */
const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length

await test('the memory store keeps the contract', async (t) => {
  const store = new MemoryStore()
  await storeContract(t, async () => store)
})

await test('the memory store leases all calls of a minute at once, and lets nobody wait for others', async (t) => {
  const { limits } = new MemoryStore()
  await earlyInAMinute()
  const { calls, endsInMs } = await limits.leaseCalls('calls', 20)
  t.equal(calls, 20)
  t.ok(endsInMs > 0 && endsInMs <= 60_000)
  t.match(await limits.leaseCalls('calls', 20), { calls: 0 })
  t.match(await limits.leaseCalls('other calls', 20), { calls: 20 })
  t.equal(await limits.claim({ key: 'permits', holder: 'one', count: 2 }, 2), true)
  t.equal(await limits.claim({ key: 'permits', holder: 'one', count: 3 }, 2), false)
  for (const durationMs of [3000, 500]) t.equal(await limits.enqueue('queue', durationMs), 0)
})

await test('the Redis store keeps the contract', async (t) => {
  const redis = await testRedis(t)
  await sharedStoreContract(t, () => connectedStore(t, redis.url))
})

await test('a ledger that an empty Redis has never seen grants nothing until the leases of its predecessor have ended', async (t) => {
  const { url } = await testRedis(t)
  const store = await connectedStore(t, url)
  const windows = [{ windowMs: 60_000, ceilings: { orders: 10, otps: 8, reads: 5 } }]
  const terms = { windows, leaseMs: 5000, marginMs: 1000, bucketMs: 100 }
  const ledger = await store.openLedger('empty', terms)
  const none = { orders: 0, otps: 0, reads: 0 }
  const unheard = { ledger: '', heardAt: 0, sinceMs: 0, spent: 0, held: none, lapsed: 0, spends: [], isWhole: true }
  const reply = await ledger.settle({ holder: 'one', sequence: 1, ...unheard, wanted: { ...none, orders: 1 } })
  t.match(reply, { is: 'settled', granted: none, quietMs: 5000 + LEDGER.leaseSkewMs })
})

await test('reads and writes reject with StoreUnavailable while Redis is down, and cached values are invalidated', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  const invalidated = new Promise<void>((resolve) => {
    store.onChange((key) => {
      if (key === undefined) resolve()
    })
  })
  await redis.close()
  await invalidated
  await t.rejects(store.read('k'), StoreUnavailable)
  await t.rejects(store.create('k', 'v', Date.now() + 1000), StoreUnavailable)
  t.type(store.unavailableSince(), 'number')
})

await test('a Redis that hangs is unavailable, and is used again once it responds', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  await store.create('k', 'v', Date.now() + 60_000)
  const warnings = { count: 0 }
  const doubted = new Promise<void>((resolve) => {
    store.onChange((key) => {
      if (key !== undefined) return
      warnings.count++
      resolve()
    })
  })
  redis.process.kill('SIGSTOP')
  // Other commands go on meanwhile. They must not make the connection look healthy.
  const traffic = setInterval(() => void store.read('other').catch(() => undefined), 10)
  t.teardown(() => clearInterval(traffic))
  await doubted
  await t.rejects(store.read('k'), StoreUnavailable)
  t.equal(warnings.count, 1, 'the outage is logged once')
  redis.process.kill('SIGCONT')
  const valueOf = async (key: string): Promise<string | undefined> => {
    try {
      return (await store.read(key))?.value
    } catch (error) {
      t.type(error, StoreUnavailable)
      return undefined
    }
  }
  await until(async () => (await valueOf('k')) === 'v')
  t.equal(store.unavailableSince(), undefined)
})

await test('a store counts anew for how long it has been available after each interruption', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  redis.process.kill('SIGSTOP')
  await until(() => store.unavailableSince() !== undefined)
  t.equal(store.availableForMs(), 0)
  const frozenUntil = performance.now()
  redis.process.kill('SIGCONT')
  await until(() => store.unavailableSince() === undefined)
  t.ok(store.availableForMs() < performance.now() - frozenUntil)
})

await test('a failed command interrupts a store whose link is healthy, and a write for which there is no room does not', async (t) => {
  const health = new LinkHealth({ abandon: () => undefined }, QUIET, () => undefined)
  t.teardown(() => health.close())
  health.noteAlive()
  const aliveAt = performance.now()
  health.noteErrorCode('OOM')
  const now = performance.now()
  t.ok(health.healthyForMs >= now - aliveAt, 'it is merely full')
  for (const code of [undefined, 'CLUSTERDOWN', 'MISCONF', 'NOREPLICAS']) {
    await delay(2)
    const failedAt = performance.now()
    if (code === undefined) health.noteFailure()
    else health.noteErrorCode(code)
    t.ok(health.healthyForMs <= performance.now() - failedAt)
  }
  t.equal(health.downSince, undefined)
})

await test('a connection that stays silent is replaced by a new one', async (t) => {
  const redis = await testRedis(t)
  const store = await connectedStore(t, redis.url)
  // A peer that vanished silently: no command to it gets a reply.
  redis.process.kill('SIGSTOP')
  await until(() => store.unavailableSince() !== undefined)
  const { port } = redis
  await redis.close()
  const next = await startRedis([], port)
  t.teardown(() => next.close())
  await until(() => store.unavailableSince() === undefined)
  t.equal(await store.create('k', 'v', Date.now() + 1000), true)
})

await test('a store that is closed while it cannot connect closes at once', async (t) => {
  const redis = await testRedis(t)
  await redis.close()
  const store = RedisStore.connect(new Changeable(redis.url), QUIET)
  await store.close()
  t.type(store.unavailableSince(), 'number')
})

/** A store, and the reasons for its outages that it logs. */
async function watched(t: Test, url: string): Promise<{ store: RedisStore; reasons: string[] }> {
  const reasons: string[] = []
  const warn = (details: object): unknown => reasons.push((details as { reason: string }).reason)
  return { store: await connectedStore(t, url, { warn }), reasons }
}

await test('a store leaves nothing behind when its Redis dies while the last replies are awaited', async (t) => {
  const redis = await testRedis(t)
  const before = timers()
  const store = await connectedStore(t, redis.url)
  // It reads the commands, but does not run them. So the connection ends without an error.
  await askRedis(redis, ['CLIENT', 'PAUSE', '60000', 'ALL'])
  const unanswered = t.rejects(store.read('k'), StoreUnavailable)
  const closing = store.close()
  await delay(200)
  redis.process.kill('SIGKILL')
  await Promise.all([closing, unanswered])
  let left = timers()
  for (let count = 0; count < 30 && left > before; count++) {
    await delay(100)
    left = timers()
  }
  t.ok(left <= before, 'no timer')
})

await test('a connection that is closed while it opens does not stay open', async (t) => {
  const redis = await testRedis(t)
  const connection = newConnection({ url: redis.url })
  const opened = connection.connect()
  connection.destroy()
  await opened.catch(() => undefined)
  await until(async () => {
    const clients = (await askRedis(redis, ['CLIENT', 'LIST'])) as string
    return clients.trim().split('\n').length === 1
  }, 'only the connection that asks is left')
  t.equal(connection.isReady, false)
})

await test('a Redis that becomes a replica is left at once, and used again as a master', async (t) => {
  const redis = await testRedis(t)
  const refused = (response: Promise<unknown>) => t.rejects(response, StoreUnavailable)
  for (const [servesReads, use] of [
    ['yes', (store: RedisStore) => refused(store.create('other', 'v', Date.now() + 1000))],
    ['yes', async (store: RedisStore) => void (await store.extend('k', Date.now() + 90_000))],
    // Without its master it refuses reads too.
    ['no', (store: RedisStore) => refused(store.read('k'))],
  ] as const) {
    const { store, reasons } = await watched(t, redis.url)
    await store.create('k', 'v', Date.now() + 60_000)
    const warnings: unknown[] = []
    store.onChange((key) => key === undefined && warnings.push(key))
    await askRedis(redis, ['CONFIG', 'SET', 'replica-serve-stale-data', servesReads])
    await askRedis(redis, ['REPLICAOF', '127.0.0.1', '1'])
    await use(store)
    t.type(store.unavailableSince(), 'number')
    t.equal(warnings.length, 1, 'the values that were read before are invalidated')
    await refused(store.read('k'))
    t.match(reasons, [/^READONLY|MASTERDOWN$/])
    await askRedis(redis, ['REPLICAOF', 'NO', 'ONE'])
    await until(() => store.unavailableSince() === undefined)
    t.equal(await store.create('new', 'v', Date.now() + 1000), true)
    await store.remove('new')
  }
})

await test('the store does not use a replica', async (t) => {
  const master = await testRedis(t)
  const replica = await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
  const reasons: string[] = []
  const warn = (details: object): unknown => reasons.push((details as { reason: string }).reason)
  const store = RedisStore.connect(new Changeable(replica.url), { ...QUIET, warn })
  t.teardown(() => store.close())
  await until(() => reasons.length > 0)
  t.same(reasons, ['it is a slave'])
  await askRedis(replica, ['REPLICAOF', 'NO', 'ONE'])
  await until(() => store.unavailableSince() === undefined)
})

await test('the store waits while Redis loads its data', async (t) => {
  const redis = await testRedis(t, ['--enable-debug-command', 'yes'])
  const { store, reasons } = await watched(t, redis.url)
  await store.create('k', 'v', Date.now() + 60_000)
  await askRedis(redis, ['DEBUG', 'POPULATE', '2000'])
  // It loads for 2 s, and serves its clients now and then.
  const slowly = ['key-load-delay', '1000', 'loading-process-events-interval-bytes', '1024']
  await askRedis(redis, ['CONFIG', 'SET', ...slowly])
  void askRedis(redis, ['DEBUG', 'RELOAD'])
  const isRefused = () =>
    store.read('k').then(
      () => false,
      (error) => error instanceof StoreUnavailable,
    )
  await until(isRefused)
  t.same(reasons, ['LOADING'])
  t.type(store.unavailableSince(), 'number')
  await until(async () => (await store.read('k').catch(() => undefined)) !== undefined)
  t.same(reasons, ['LOADING'])
})

await test('closing the store logs no outage', async (t) => {
  const redis = await testRedis(t)
  const warnings: unknown[] = []
  const store = await connectedStore(t, redis.url, { warn: (details: object) => void warnings.push(details) })
  await store.close()
  t.same(warnings, [])
  await t.rejects(store.read('k'), StoreUnavailable)
})
