import { test, type Test } from 'tap'
import { connectedStore } from '../support/redis/connected-store.ts'
import { sharedStoreContract } from '../store/store-contract.ts'
import { testCa, trust, type TestCa } from '../support/redis/tls.ts'
import { deniedOn, withDocumentedRights } from '../support/redis/rights.ts'
import type { Topology } from '../support/redis/topologies.ts'
import { assertEndedSessionsAreNoticed, assertMasterLossIsSurvived, freeze } from './failover.ts'

/** The tests of every topology in which a replica replaces a lost master. */
export async function testReplicatedStore(
  where: string,
  start: (t: Test, ca?: TestCa) => Promise<Topology>,
): Promise<void> {
  await test(`${where}, RedisStore fulfils the contract of Store with the rights that the documentation names`, async (t) => {
    const topology = await start(t)
    const url = await withDocumentedRights(topology, where === 'On a Cluster')
    await sharedStoreContract(t, () => connectedStore(t, url), true)
    t.same(await deniedOn(topology.nodes), [], 'nothing was denied')
  })

  await test(`${where}, no session and no logout is lost with a master`, async (t) => {
    await assertMasterLossIsSurvived(t, await start(t))
  })

  await test(`${where}, no session and no logout is lost when a master hangs`, async (t) => {
    await assertMasterLossIsSurvived(t, await start(t), freeze)
  })

  await test(`${where} with TLS and a password, no session and no logout is lost with a master`, async (t) => {
    const ca = await testCa(t)
    await trust(t, ca)
    await assertMasterLossIsSurvived(t, await start(t, ca))
  })

  await test(`${where}, watchers of a session and requests notice that it has ended elsewhere`, async (t) => {
    await assertEndedSessionsAreNoticed(t, await start(t))
  })
}
