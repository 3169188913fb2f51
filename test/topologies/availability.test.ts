import { test } from 'tap'
import { probeRedis } from '../../src/store/probe.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis, testCluster, type Topology } from '../support/redis/topologies.ts'
import { untilSlow as until } from '../support/time/until.ts'

/** Sends a command until it is replied to, which takes its time on a busy machine. */
const tell = (node: Topology['nodes'][number], ...words: string[]): Promise<void> =>
  until(async () => (await askRedis(node, words)) !== undefined, `a reply to ${words.join(' ')}`)

/** The URL for a user that may do everything on every node. */
async function withUser({ url, nodes }: Topology): Promise<string> {
  for (const node of nodes) await tell(node, 'ACL', 'SETUSER', 'poor', 'on', '>secret', '~*', '&*', '+@all')
  return url.replaceAll('redis://', 'redis://poor:secret@')
}

await test('On a Cluster, the store is unavailable where no master serves, and a warning names those of some that do not', async (t) => {
  const topology = await testCluster(t)
  const masters = await topology.masters()
  const [first, ...others] = masters
  if (first === undefined) throw new Error('no master')
  const url = await withUser(topology)
  const store = await connectedStore(t, url)
  const check = async (): Promise<string[]> =>
    (await probeRedis(url, { timeoutMs: 5000, replicas: 1, hasSubjects: true }))
      .filter(({ message }) => !message.includes('append-only'))
      .map(({ is, message }) => `${is}: ${message}`)
  t.match(await check(), [/^ok: .* a master that takes writes$/, /^ok/, /^ok/])
  t.same([store.unavailableSince(), store.condition().share], [undefined, 1])

  await tell(first, 'ACL', 'SETUSER', 'poor', '-set')
  await until(() => store.condition().share < 1, 'one master does not serve')
  t.equal(store.condition().share.toFixed(2), '0.67')
  t.equal(store.unavailableSince(), undefined)
  t.match(
    store.warnings().filter((warning) => !/append-only|replicas/.test(warning)),
    [new RegExp(`a master of the session store does not serve: 127\\.0\\.0\\.1:${first.port}: NOPERM: SET\\. Give`)],
  )
  t.equal((await check()).filter((line) => line.startsWith('warning: ')).length, 1)
  t.equal((await check()).filter((line) => line.startsWith('failed: ')).length, 0)
  for (const other of others) await tell(other, 'ACL', 'SETUSER', 'poor', '-set')
  await until(() => store.unavailableSince() !== undefined, 'no master serves')
  t.equal(store.condition().share, 0)
  t.match(store.condition().why, [/^NOPERM: SET\. /])
  t.match(await check(), [/^failed: .* no right to SET$/, /^failed/, /^failed/])
  for (const master of masters) await tell(master, 'ACL', 'SETUSER', 'poor', '+set')
  await until(() => store.unavailableSince() === undefined && store.condition().share === 1, 'all serve')

  const slots = (await askRedis(first, ['CLUSTER', 'SLOTS'])) as [number, number, [string, number]][]
  const [slot] = slots.find(([, , [, port]]) => port === first.port) ?? []
  for (const node of topology.nodes) await askRedis(node, ['CLUSTER', 'DELSLOTS', String(slot)])
  await until(() => store.unavailableSince() !== undefined, 'the Cluster is down')
  t.match(store.condition().why, [/^CLUSTERDOWN\. .*slots without a master/])
  t.match(await check(), [/^failed: .*does not serve \(CLUSTERDOWN\)$/])
  await askRedis(first, ['CLUSTER', 'ADDSLOTS', String(slot)])
  await until(() => store.unavailableSince() === undefined, 'the Cluster serves again')

  const late = await connectedStore(t, await withUser(topology))
  t.equal(late.unavailableSince(), undefined)
})
