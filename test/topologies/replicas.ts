import { test, type Test } from 'tap'
import { RedisStore } from '../../src/store/redis-store.ts'
import { storeContract } from '../store/store-contract.ts'
import { testCa, trust, type TestCa } from '../support/redis-tls.ts'
import type { Topology } from '../support/redis-topologies.ts'
import { freeze, hearsEndings, survivesMasterLoss } from './failover.ts'

const quiet = { error: () => undefined, warn: () => undefined, info: () => undefined }

/** What is promised wherever a replica takes the place of a master that is lost. */
export async function keepsItsPromises(
  where: string,
  start: (t: Test, ca?: TestCa) => Promise<Topology>,
): Promise<void> {
  await test(`the Redis store keeps the contract ${where}`, async (t) => {
    const { url } = await start(t)
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
    await survivesMasterLoss(t, await start(t))
  })

  await test('so with a master that hangs', async (t) => {
    await survivesMasterLoss(t, await start(t), freeze)
  })

  await test('so over TLS and with a password', async (t) => {
    const ca = await testCa(t)
    await trust(t, ca)
    await survivesMasterLoss(t, await start(t, ca))
  })

  await test('who holds a session hears that it ended elsewhere', async (t) => {
    await hearsEndings(t, await start(t))
  })
}
