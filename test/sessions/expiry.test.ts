import { test, type Test } from 'tap'
import { instanceOn, newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until, within } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

/** Lets a session expire that two instances have cached. @returns the ends that both recorded together */
async function expire(t: Test, settings: Record<string, string>): Promise<{ logged: string[]; counted: string[] }> {
  const world = await startWorld(t, { redis: true, settings })
  const servers = [world.server, await world.instance()]
  await world.logIn()
  const { cookie } = world
  const isLive = async (url: string): Promise<boolean> => {
    const response = await fetch(`${url}/auth/session`, { headers: { cookie } })
    return ((await response.json()) as { authenticated: boolean }).authenticated
  }
  for (const { url } of servers) t.ok(await isLive(url))
  const ends = () => servers.flatMap(({ log }) => log.filter(({ audit }) => audit === 'session_ended'))
  await until(() => ends().length > 0)
  for (const { url } of servers) t.notOk(await isLive(url))
  const metrics = await Promise.all(servers.map(async ({ opsUrl }) => (await fetch(`${opsUrl}/metrics`)).text()))
  return {
    logged: ends().map(({ reason }) => String(reason)),
    counted: metrics.flatMap((text) => text.match(/(?<=bff_sessions_ended_total)\S+ [1-9]\d*/g) ?? []),
  }
}

await test('an unused session ends as idle, and the two instances record it once', async (t) => {
  t.same(await expire(t, { SESSION_IDLE_SECONDS: '3' }), { logged: ['idle'], counted: ['{reason="idle"} 1'] })
})

await test('a session at its absolute limit ends as expired, and the two instances record it once', async (t) => {
  t.same(await expire(t, { SESSION_MAX_SECONDS: '3' }), {
    logged: ['expired'],
    counted: ['{reason="expired"} 1'],
  })
})

await test('a watcher of an unused session is notified that it ended idle, or expired', async (t) => {
  const redis = await testRedis(t)
  const { store } = await sessionInstance(t, redis.url)
  const recorded: string[] = []
  const instances = [1, 2].map(() => instanceOn(store, 3000, false))
  const [holder] = instances
  if (holder === undefined) throw new Error('no instance')
  for (const { sessions } of instances) sessions.endings.onEnd(({ reason }) => void recorded.push(reason))
  for (const [livesMs, reason] of [
    [60_000, 'idle'],
    [2000, 'expired'],
  ] as const) {
    const id = await newSession(holder, { endsAt: Date.now() + livesMs })
    const reasons = instances.map(async ({ reader, endings, cookie }) => {
      const found = await reader.read(cookie(id))
      if (found.is !== 'live') throw new Error('not live')
      return new Promise<string>((resolve) => void endings.watch(found.session, { isUse: true, onEnd: resolve }))
    })
    t.same(await within(Promise.all(reasons), 'the watchers hear of the end'), [reason, reason])
  }
  await until(() => recorded.length > 1)
  t.same(recorded, ['idle', 'expired'])
})
