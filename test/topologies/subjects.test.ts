import { test, type Test } from 'tap'
import { connectedStore } from '../support/redis/connected-store.ts'
import { assertNoneSurvives } from '../sessions/everywhere-races.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { operate, IDENTITY, IDENTIFIED } from '../support/login/identity.ts'
import { end, listed, tagOf } from '../support/login/own-sessions.ts'
import { askRedis, testCluster, testSentinel, type Topology } from '../support/redis/topologies.ts'
import { testRedis, testServer } from '../support/server/test-server.ts'
import { startWorld } from '../support/world.ts'
import { startLogin } from '../support/login/token-endpoint.ts'

const LOGINS = 1000
const SOCKETS = 60
const MEASURED = 60

async function testSingle(t: Test): Promise<Topology> {
  const redis = await testRedis(t)
  return { url: redis.url, nodes: [redis], masters: async () => [redis] }
}

for (const [where, start] of [
  ['On a single Redis', testSingle],
  ['With Sentinels', testSentinel],
  ['On a Cluster', testCluster],
] as const) {
  await test(`${where}, of ${LOGINS} logins none survives an end of all sessions that came later`, async (t) => {
    const { url } = await start(t)
    await assertNoneSurvives(t, () => connectedStore(t, url), LOGINS)
  })

  await test(`${where}, DELETE /sessions closes ${SOCKETS} sockets on three instances`, async (t) => {
    const { url } = await start(t)
    const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, REDIS_URL: url } })
    const settings = { ...world.settings, PUBLIC_URL: world.server.url }
    const servers = [world.server, await testServer(t, settings), await testServer(t, settings)]
    const sockets: BrowserSocket[] = []
    for (let count = 0; count < SOCKETS; count++) {
      const { socket } = await world.user('CR1')
      const path = count % 2 === 0 ? '/ws/session' : '/ws/trading/VRTC100'
      sockets.push(await socket(path, { at: servers[count % 3] }).opened())
    }
    const askedAt = performance.now()
    const answer = await operate(servers[1] ?? world.server, 'DELETE', { subject: 'CR1' })
    t.same(await answer.json(), { ended: SOCKETS })
    const answeredAt = performance.now()
    const closed = await Promise.all(sockets.map((socket) => socket.closed))
    const ms = (at: number): string => `${Math.round(at - askedAt)} ms`
    t.comment(`answered after ${ms(answeredAt)}, the last socket closed after ${ms(performance.now())}`)
    t.same(new Set(closed.map(({ code }) => code)), new Set([4401]))
    const reasons = sockets.flatMap(({ texts }) => texts.filter((text) => text.includes('"ended"')))
    t.same(new Set(reasons), new Set(['{"event":"ended","reason":"revoked"}']))
  })

  await test(`${where}, DELETE /auth/sessions/<tag> closes the sockets on another instance, and no instance lists the session`, async (t) => {
    const { url } = await start(t)
    const { server, settings, user } = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, REDIS_URL: url } })
    const other = await testServer(t, { ...settings, PUBLIC_URL: server.url })
    const [{ browser: mine }, { browser: theirs }] = [await user('CR1'), await user('CR1')]
    for (const each of [server, other]) t.equal((await listed(mine, each)).length, 2)
    const cookie = theirs.cookieHeader(new URL(server.url), undefined)
    const sockets = ['/ws/session', '/ws/trading/CR1'].map(
      (path) => new BrowserSocket(`ws://127.0.0.1:${other.port}${path}`, { origin: server.url, cookie }),
    )
    for (const socket of sockets) await socket.opened()
    const askedAt = performance.now()
    t.equal(await end(mine, server, await tagOf(theirs, server)), '204')
    for (const socket of sockets) t.match(await socket.closed, { code: 4401, reason: 'session_expired' })
    t.comment(`closed after ${Math.round(performance.now() - askedAt)} ms`)
    t.match(sockets[0]?.texts.at(-1), '"reason":"logout"')
    for (const each of [server, other]) t.match(await listed(mine, each), [{ current: true }])
  })
}

await test('A login with a subject costs one call upstream and two more round trips to Redis', async (t) => {
  const costs: number[] = []
  for (const settings of [{ IDENTITY_PATH: '', IDENTITY_POINTER: '', OPS_TOKEN: '' }, { OPS_TOKEN: '' }]) {
    const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, ...settings }, redis: true })
    const { redis } = world
    if (redis === undefined) throw new Error('no Redis')
    const stats = async (): Promise<Map<string, number>> => {
      const text = String(await askRedis(redis, ['INFO', 'commandstats']))
      const all = [...text.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm)]
      return new Map(all.map(([, name = '', calls]) => [name, Number(calls)]))
    }
    await world.user('warm')
    const before = await stats()
    const times: number[] = []
    for (let count = 0; count < MEASURED; count++) {
      const login = await startLogin({ ...world, ...world.visitor() })
      const beganAt = performance.now()
      await login.finish({ code: `CR${count}` })
      times.push(performance.now() - beganAt)
    }
    const after = await stats()
    const evals = ((after.get('eval') ?? 0) - (before.get('eval') ?? 0)) / MEASURED
    const ms = times.toSorted((one, other) => one - other)[MEASURED / 2] ?? 0
    costs.push(evals)
    t.comment(`${JSON.stringify(settings)}: ${evals} scripts, ${ms.toFixed(1)} ms for a callback (median)`)
  }
  const [without = 0, withSubject = 0] = costs
  // Each process also probes its master once a second, which is a script as well.
  t.equal(Math.round(withSubject - without), 2)
})
