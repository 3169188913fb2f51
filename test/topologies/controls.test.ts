import { test } from 'tap'
import { control, pause, shown } from '../support/controls/controls-world.ts'
import { IDENTITY } from '../support/login/identity.ts'
import { askRedis, testCluster, testSentinel } from '../support/redis/topologies.ts'
import { ALONE } from '../support/server/settings.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { SECRETS, testServer, type TestServer } from '../support/server/test-server.ts'
import { untilSlow as until } from '../support/time/until.ts'

for (const [where, start] of [
  ['On a Cluster', testCluster],
  ['With Sentinels', testSentinel],
] as const) {
  await test(`${where}, three instances obey a pause, and keep it when the master that has it is lost`, async (t) => {
    const { url, masters } = await start(t)
    const settings = { ...ALONE, ...IDENTITY, SESSION_SECRETS: SECRETS, REDIS_URL: url }
    const servers = [await testServer(t, settings), await testServer(t, settings), await testServer(t, settings)]
    const [first, second, third] = servers as [TestServer, TestServer, TestServer]
    const took: number[] = []
    for (let round = 1; round <= 10; round++) {
      const answer = await pause(servers[round % 3] ?? first, { message: `round ${round}` })
      t.match(answer, { status: 200, json: { version: Number } })
      const answeredAt = performance.now()
      await until(async () => {
        const versions = await Promise.all(servers.map(({ opsUrl }) => valueOf(opsUrl, 'bff_controls_version')))
        return versions.every((version) => version === answer.json['version'])
      })
      took.push(performance.now() - answeredAt)
    }
    t.comment(`all obey after ${Math.round(Math.max(...took))} ms at the latest`)
    for (const master of await masters()) {
      // The others of a Cluster name the one that has the key, and are needed for the failover.
      const has = await askRedis(master, ['EXISTS', 'bff:1:controls']).catch(() => 0)
      if (String(has) === '1') await master.close()
    }
    // On the Cluster no replica is left to confirm it: a 503, but the store has it.
    await until(async () => {
      await control(second, 'PUT', '/notice', { message: 'after the failover' })
      return (await shown(third)).notice !== null
    })
    for (const server of servers) {
      await until(async () => (await shown(server)).notice !== null)
      t.match(await shown(server), { orders: { message: 'round 10' }, notice: { message: 'after the failover' } })
    }
    const late = await testServer(t, settings)
    await until(async () => (await shown(late)).orders !== null)
    t.match(await shown(late), { orders: { message: 'round 10' }, notice: { message: 'after the failover' } })
  })
}
