import { test } from 'tap'
import { createClient } from '../support/redis/client.ts'
import { fillRedis } from '../support/redis/full-redis.ts'
import { operate, IDENTIFIED } from '../support/login/identity.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { until, untilSlow } from '../support/time/until.ts'
import { testServer, type TestServer } from '../support/server/test-server.ts'
import { startWorld } from '../support/world.ts'

/** Less than a warning lasts that nothing renews. */
const RECOVERY_MS = 30_000
/** Without the warning of a Redis that forgets everything at a restart. */
const DURABLE = ['--appendonly', 'yes']

interface Readiness {
  readonly ready: boolean
  readonly warnings: readonly string[]
}

const readiness = async ({ opsUrl }: TestServer): Promise<Readiness> =>
  (await (await fetch(`${opsUrl}/readyz`)).json()) as Readiness

await test('GET /readyz on three instances: all of them warn of a Redis that refuses writes, and of none once it takes them again', async (t) => {
  const { settings, server, redis } = await startWorld(t, { redis: DURABLE })
  const instances = [server, await testServer(t, settings), await testServer(t, settings)]
  const url = redis?.url ?? ''
  const client = await createClient({ url }).connect()
  t.teardown(() => client.close())
  const allWarn = async (): Promise<boolean> => {
    const all = await Promise.all(instances.map(readiness))
    return all.every(({ ready, warnings }) => ready && warnings.some((warning) => warning.includes('(OOM)')))
  }
  const noneWarns = async (): Promise<boolean> =>
    (await Promise.all(instances.map(readiness))).every(({ ready, warnings }) => ready && warnings.length === 0)
  t.ok(await noneWarns())

  const full = await fillRedis(t, url)
  await untilSlow(async () => {
    await full.fillUp()
    return allWarn()
  }, 'all instances warn that Redis is full')
  for (const { opsUrl, log } of instances) {
    const refused = await samplesOf(opsUrl, 'bff_session_store_refused_writes_total')
    t.equal(refused.get('reason="oom"'), 0, 'although nobody has tried to write')
    t.match(
      log.filter(({ msg }) => msg === 'the session store refuses writes'),
      [{ level: 40, reason: 'OOM' }],
      'and each logs it once',
    )
  }
  await full.empty()
  await until(noneWarns, 'all instances learn that there is room again', RECOVERY_MS)

  t.same(await client.keys('*probe*'), [], 'nothing is written for that')
})

await test('/sessions: 503 while the store is down, and nothing is claimed', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, redis: true })
  await world.user('CR1')
  await world.redis?.close()
  for (const method of ['GET', 'DELETE'] as const) {
    const answer = await operate(world.server, method, { subject: 'CR1' })
    t.equal(answer.status, 503)
    t.equal(answer.headers.get('retry-after'), '1')
    t.same(await answer.json(), { error: 'The session store is unavailable' })
  }
  const audits = world.server.log.filter(({ audit }) => String(audit).startsWith('sessions_'))
  t.match(
    audits,
    [{ audit: 'sessions_revoked', outcome: 'incomplete', cause: { message: String } }],
    'for the end alone',
  )
  t.notOk('ended' in (audits[0] ?? {}))
})
