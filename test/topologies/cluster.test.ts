import { test } from 'tap'
import { RedisStore } from '../../src/store/redis-store.ts'
import { hearsEndings, survivesMasterLoss } from './failover.ts'
import { storeContract } from '../store/store-contract.ts'
import { testCluster } from '../support/redis-topologies.ts'

const quiet = { warn: () => undefined, info: () => undefined }

await test('the Redis store keeps the contract on a Cluster', async (t) => {
  const { url } = await testCluster(t)
  await storeContract(
    t,
    async () => {
      const store = RedisStore.connect(url, quiet)
      t.teardown(() => store.close())
      await store.connected(5000)
      return store
    },
    true,
  )
})

await test('a master that is lost takes no session with it, and no logout', async (t) => {
  await survivesMasterLoss(t, await testCluster(t))
})

await test('who holds a session hears that it ended elsewhere', async (t) => {
  await hearsEndings(t, await testCluster(t))
})
