import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { LEDGER } from '../../src/store/ledger/ledger.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { newConnection } from '../../src/store/links/connection.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { FIRST_REPORT, NO_TOKENS } from '../support/budget/first-report.ts'
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
  const reply = await ledger.settle({ ...FIRST_REPORT, wanted: { ...NO_TOKENS, orders: 1 } })
  t.match(reply, { is: 'settled', granted: NO_TOKENS, quietMs: 5000 + LEDGER.leaseSkewMs })
})

await test('a store that is closed while it cannot connect closes at once', async (t) => {
  const redis = await testRedis(t)
  await redis.close()
  const store = RedisStore.connect(new Changeable(redis.url), QUIET)
  await store.close()
  t.type(store.unavailableSince(), 'number')
})

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

await test('closing the store logs no outage', async (t) => {
  const redis = await testRedis(t)
  const warnings: unknown[] = []
  const store = await connectedStore(t, redis.url, { warn: (details: object) => void warnings.push(details) })
  await store.close()
  t.same(warnings, [])
  await t.rejects(store.read('k'), StoreUnavailable)
})
