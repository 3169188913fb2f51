import { test } from 'tap'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis, testCluster, type Topology } from '../support/redis/topologies.ts'
import { untilSlow as until } from '../support/time/until.ts'

/** The URL for a user that may do everything on every node. */
async function withUser({ url, nodes }: Topology): Promise<string> {
  for (const node of nodes) await askRedis(node, ['ACL', 'SETUSER', 'poor', 'on', '>secret', '~*', '&*', '+@all'])
  return url.replaceAll('redis://', 'redis://poor:secret@')
}

await test('On a Cluster, the store is unavailable where no master serves, and a warning names those of some that do not', async (t) => {
  const topology = await testCluster(t)
  const masters = await topology.masters()
  const [first, ...others] = masters
  if (first === undefined) throw new Error('no master')
  const store = await connectedStore(t, await withUser(topology))
  t.same([store.unavailableSince(), store.servingShare()], [undefined, 1])

  await askRedis(first, ['ACL', 'SETUSER', 'poor', '-set'])
  await until(() => store.servingShare() < 1, 'one master does not serve')
  t.equal(store.servingShare().toFixed(2), '0.67')
  t.equal(store.unavailableSince(), undefined)
  t.match(
    store.warnings().filter((warning) => !/append-only|replicas/.test(warning)),
    [new RegExp(`a master of the session store does not serve: 127\\.0\\.0\\.1:${first.port}: NOPERM: SET\\. Give`)],
  )
  for (const other of others) await askRedis(other, ['ACL', 'SETUSER', 'poor', '-set'])
  await until(() => store.unavailableSince() !== undefined, 'no master serves')
  t.equal(store.servingShare(), 0)
  t.match(store.unavailableWhy(), [/^NOPERM: SET\. /])
  for (const master of masters) await askRedis(master, ['ACL', 'SETUSER', 'poor', '+set'])
  await until(() => store.unavailableSince() === undefined && store.servingShare() === 1, 'all serve')

  const slots = (await askRedis(first, ['CLUSTER', 'SLOTS'])) as [number, number, [string, number]][]
  const [slot] = slots.find(([, , [, port]]) => port === first.port) ?? []
  for (const node of topology.nodes) await askRedis(node, ['CLUSTER', 'DELSLOTS', String(slot)])
  await until(() => store.unavailableSince() !== undefined, 'the Cluster is down')
  t.match(store.unavailableWhy(), [/^CLUSTERDOWN\. .*slots without a master/])
  await askRedis(first, ['CLUSTER', 'ADDSLOTS', String(slot)])
  await until(() => store.unavailableSince() === undefined, 'the Cluster serves again')

  const late = await connectedStore(t, await withUser(topology))
  t.equal(late.unavailableSince(), undefined)
})
