import { test, type Test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { durableCluster, durableSentinel } from '../support/redis/durable-topologies.ts'
import { newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { untilSlow as until } from '../support/time/until.ts'

const SESSIONS = 20

for (const [where, start] of [
  ['Behind Sentinels', (t: Test) => durableSentinel(t, 1)],
  ['On a Cluster', durableCluster],
] as const) {
  await test(`${where}, two instances count each lost session once, and no session that has ended`, async (t) => {
    const topology = await start(t)
    const instances = await Promise.all([0, 1].map(() => sessionInstance(t, topology.url)))
    const [first] = instances
    if (first === undefined) throw new Error('no instance')
    const lost: string[] = []
    for (const { sessions } of instances) {
      sessions.endings.onRecord(({ key, reason }) => void (reason === 'gone' && lost.push(key)))
    }
    const ids = await Promise.all(Array.from({ length: SESSIONS }, () => newSession(first)))
    const live = async (): Promise<number[]> =>
      Promise.all(
        instances.map(async ({ reader, cookie }) => {
          const found = await Promise.all(ids.map(async (id) => reader.use(cookie(id))))
          return found.filter(({ is }) => is === 'live').length
        }),
      )
    t.same(await live(), [SESSIONS, SESSIONS])
    const [ended = '', ...rest] = ids
    await first.sessions.end(sessionKey(ended), 'logout')
    const gone = rest.slice(0, SESSIONS / 2).map(sessionKey)
    const stranger = await connectedStore(t, topology.url)
    for (const key of gone) t.ok(await stranger.remove(key))
    const left = SESSIONS / 2 - 1
    await until(async () => (await live()).every((count) => count === left), 'both miss the sessions')
    await until(() => lost.length >= gone.length, 'all are counted')
    await live()
    t.same(lost.toSorted(), gone.toSorted())
  })
}
