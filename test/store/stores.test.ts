import { test } from 'tap'
import { startRedis } from '../../sandbox/redis-process.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { testRedis } from '../support/world.ts'
import { storeContract } from './store-contract.ts'

async function connected(url: string): Promise<RedisStore> {
  const store = RedisStore.connect(url, quiet)
  await store.connected(5000)
  return store
}

const quiet = { warn: () => undefined, info: () => undefined }

await test('the memory store keeps the contract', async (t) => {
  const store = new MemoryStore()
  await storeContract(t, async () => store)
})

await test('the Redis store keeps the contract', async (t) => {
  const redis = await testRedis(t)
  await storeContract(t, async () => {
    const store = await connected(redis.url)
    t.teardown(() => store.close())
    return store
  })
})

await test('a Redis that is gone is said to be unavailable, at once and by name', async (t) => {
  const redis = await testRedis(t)
  const store = await connected(redis.url)
  t.teardown(() => store.close())
  const doubt = new Promise<void>((resolve) => {
    store.onChange((key) => {
      if (key === undefined) resolve()
    })
  })
  await redis.close()
  await doubt
  await t.rejects(store.read('k'), StoreUnavailable)
  await t.rejects(store.create('k', 'v', Date.now() + 1000), StoreUnavailable)
  t.type(store.unavailableSince(), 'number')
})

await test('a Redis that hangs is given up on, and used again when it goes on', async (t) => {
  const redis = await testRedis(t)
  const store = await connected(redis.url)
  t.teardown(() => store.close())
  await store.create('k', 'v', Date.now() + 60_000)
  const doubts = { count: 0 }
  const doubted = new Promise<void>((resolve) => {
    store.onChange((key) => {
      if (key !== undefined) return
      doubts.count++
      resolve()
    })
  })
  redis.process.kill('SIGSTOP')
  // Others go on asking all the while: that must not make the link look alive.
  const traffic = setInterval(() => void store.read('other').catch(() => undefined), 10)
  t.teardown(() => clearInterval(traffic))
  await doubted
  await t.rejects(store.read('k'), StoreUnavailable)
  t.equal(doubts.count, 1, 'said once')
  redis.process.kill('SIGCONT')
  const back = async (): Promise<string | undefined> => {
    try {
      return (await store.read('k'))?.value
    } catch (error) {
      t.type(error, StoreUnavailable)
      await new Promise((resolve) => void setTimeout(resolve, 50))
      return back()
    }
  }
  t.equal(await back(), 'v')
  t.equal(store.unavailableSince(), undefined)
})

await test('a link that stays dead is opened anew', async (t) => {
  const redis = await testRedis(t)
  const store = await connected(redis.url)
  t.teardown(() => store.close())
  // A peer that vanished without a word: what is written to it is never answered.
  redis.process.kill('SIGSTOP')
  while (store.unavailableSince() === undefined) await new Promise((resolve) => void setTimeout(resolve, 20))
  const { port } = redis
  await redis.close()
  const next = await startRedis([], port)
  t.teardown(() => next.close())
  while (store.unavailableSince() !== undefined) await new Promise((resolve) => void setTimeout(resolve, 20))
  t.equal(await store.create('k', 'v', Date.now() + 1000), true)
})

await test('a store that is closed while it cannot connect closes at once', async (t) => {
  const redis = await testRedis(t)
  await redis.close()
  const store = RedisStore.connect(redis.url, quiet)
  await store.close()
  t.type(store.unavailableSince(), 'number')
})
