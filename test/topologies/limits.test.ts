import { test } from 'tap'
import { earlyInAMinute } from '../support/time/clock-minute.ts'
import { askRedis, testCluster, testSentinel } from '../support/redis/topologies.ts'
import { untilSlow } from '../support/time/until.ts'
import { TRADING } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

for (const [where, start] of [
  ['On a Cluster', testCluster],
  ['With Sentinels', testSentinel],
] as const) {
  await test(`${where}, two instances count the sockets and the calls of a session together`, async (t) => {
    const topology = await start(t)
    const limits = { MAX_RELAYS_PER_SESSION: '2', API_REQUESTS_PER_MINUTE: '6' }
    const world = await startWorld(t, { ...RELAY, settings: { REDIS_URL: topology.url, ...limits } })
    const other = await world.instance()
    const ports = [world.server.port, other.port]
    const { cookie } = world
    await earlyInAMinute()
    for (const port of ports) {
      await world.socket(TRADING, { at: { port } }).opened()
      await world.upstream.socket()
    }
    for (const port of ports) {
      t.same(await world.socket(TRADING, { at: { port } }).closed, { code: 4429, reason: 'too_many_relays' })
    }
    const statuses: number[] = []
    for (let count = 0; count < 8; count++) {
      const url = `http://localhost:${ports[count % 2]}/api/trading/v1/options/accounts`
      const response = await fetch(url, { headers: { cookie, 'x-csrf': '1' } })
      statuses.push(response.status)
      await response.arrayBuffer()
    }
    t.same(
      statuses.sort((one, another) => one - another),
      [200, 200, 200, 200, 429, 429, 429, 429],
      'beside the two one-time URLs',
    )
    t.equal((await world.logOut()).status, 204)
    await untilSlow(async () => {
      const keys = await Promise.all((await topology.masters()).map((redis) => askRedis(redis, ['KEYS', '*:relays'])))
      return keys.every((found) => (found as unknown[]).length === 0)
    }, 'the permits go with the session')
  })
}
