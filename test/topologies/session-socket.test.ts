import { test, type Test } from 'tap'
import { askRedis, testCluster, testSentinel, type Topology } from '../support/redis/topologies.ts'
import { startWorld, RELAY } from '../support/world.ts'

/** How many commands read keys on all masters so far. */
async function readsOf({ masters }: Topology): Promise<number> {
  const replies = await Promise.all((await masters()).map((redis) => askRedis(redis, ['INFO', 'commandstats'])))
  const counts = replies.join('\n').matchAll(/^cmdstat_(?:get|pexpiretime):calls=(\d+)/gm)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

for (const [where, start] of [
  ['On a Cluster', testCluster],
  ['With Sentinels', testSentinel],
] as const) {
  await test(`${where}, session sockets of two instances learn of a logout, with its reason`, async (t: Test) => {
    const topology = await start(t)
    const world = await startWorld(t, { ...RELAY, settings: { REDIS_URL: topology.url } })
    const other = await world.instance()
    const clients = await Promise.all(
      [world.server.port, other.port].map(async (port) => {
        const client = await world.socket('/ws/session', { at: { port } }).opened()
        await client.count(1)
        return client
      }),
    )
    // The subscriptions are in place by now; a socket that only listens costs no reads then.
    await new Promise((resolve) => void setTimeout(resolve, 2000))
    const before = await readsOf(topology)
    await new Promise((resolve) => void setTimeout(resolve, 4000))
    const reads = (await readsOf(topology)) - before
    t.ok(reads <= 4, `${reads} reads in 4 s`)

    t.equal((await world.logOut()).status, 204)
    const loggedOutAt = performance.now()
    for (const client of clients) {
      t.same(await client.closed, { code: 4401, reason: 'session_expired' })
      t.match(client.texts.at(-1), '"event":"ended","reason":"logout"')
    }
    t.comment(`${Math.round(performance.now() - loggedOutAt)} ms after the response`)
  })
}
