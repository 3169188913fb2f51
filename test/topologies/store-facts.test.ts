import { test } from 'tap'
import { askRedis, testCluster, testSentinel } from '../support/redis/topologies.ts'
import { newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { until as soon, untilSlow as until } from '../support/time/until.ts'

const MEGABYTE = 1_048_576

for (const [where, start] of [
  ['On a Cluster', testCluster],
  ['Behind Sentinels', testSentinel],
] as const) {
  await test(`${where}, RedisStore.facts counts the sessions of all masters and reports the memory of the fullest`, async (t) => {
    const { url, masters } = await start(t)
    const instance = await sessionInstance(t, url)
    for (let count = 0; count < 20; count++) await newSession(instance)
    await until(async () => (await instance.store.facts())?.sessions === 20, 'all sessions are counted')
    const [small, ...others] = await masters()
    for (const { redis, bytes } of [
      { redis: small, bytes: 60 * MEGABYTE },
      ...others.map((redis) => ({ redis, bytes: 900 * MEGABYTE })),
    ]) {
      if (redis !== undefined) await askRedis(redis, ['CONFIG', 'SET', 'maxmemory', String(bytes)])
    }
    await until(
      async () => (await instance.store.facts())?.memory?.maxBytes === 60 * MEGABYTE,
      'the memory of the fullest master is reported',
    )
  })

  await test(`${where}, RedisStore.warnings says so while a master refuses writes, although nobody writes`, async (t) => {
    const { url, masters } = await start(t)
    const { store } = await sessionInstance(t, url)
    const [master] = await masters()
    if (master === undefined) throw new Error('no master')
    for (const [code, name, refusing, accepting] of [
      ['OOM', 'maxmemory', '1', '0'],
      ['NOREPLICAS', 'min-replicas-to-write', '5', '0'],
    ] as const) {
      t.same(store.warnings(), [])
      await askRedis(master, ['CONFIG', 'SET', name, refusing])
      await until(() => store.warnings().some((warning) => warning.includes(code)), `${code} is noticed`)
      await askRedis(master, ['CONFIG', 'SET', name, accepting])
      // Sooner than a warning expires that nothing renews.
      await soon(() => store.warnings().length === 0, `the end of ${code} is noticed`, 30_000)
    }
  })
}
