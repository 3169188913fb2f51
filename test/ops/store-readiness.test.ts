import Fastify from 'fastify'
import { readiness as reasonsOf } from '../../src/ops/ops-listener.ts'
import type { StoreHealth } from '../../src/store/store.ts'
import { samplesOf, valueOf } from '../support/telemetry/metrics.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { fillRedis } from '../support/redis/full-redis.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { type TestServer, testRedis, SECRETS } from '../support/server/test-server.ts'
import { type World, startWorld } from '../support/world.ts'
import { ALONE } from '../support/server/settings.ts'
import { exactly } from '../support/exactly.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

const CSRF = { headers: { 'x-csrf': '1' } }

const urlOf = (world: World): string => world.redis?.url ?? ''

async function readiness(
  opsUrl: string,
): Promise<{ status: number; ready: boolean; reasons: string[]; warnings: string[] }> {
  const response = await fetch(`${opsUrl}/readyz`)
  const body = (await response.json()) as Omit<Awaited<ReturnType<typeof readiness>>, 'status'>
  return { ...body, status: response.status }
}

const errors = async ({ opsUrl }: TestServer, kind: string): Promise<number> =>
  (await samplesOf(opsUrl, 'bff_session_store_errors_total')).get(`kind="${kind}"`) ?? Number.NaN

/** Without the warning of a Redis that forgets everything at a restart. */
const DURABLE = ['--appendonly', 'yes']

await sideBySide({
  '/readyz: 503 once a store that was reached has been gone for READY_GRACE_SECONDS': async (t) => {
    const { server, redis } = await startWorld(t, { redis: true, settings: { READY_GRACE_SECONDS: '1' } })
    t.equal((await readiness(server.opsUrl)).status, 200)
    const stoppedAt = Date.now()
    redis?.process.kill('SIGSTOP')
    await until(async () => (await readiness(server.opsUrl)).status === 503)
    t.ok(Date.now() - stoppedAt >= 1000)
    t.match((await readiness(server.opsUrl)).reasons, exactly(/^session store unavailable: \w+\. Check /))
    redis?.process.kill('SIGCONT')
    await until(async () => (await readiness(server.opsUrl)).status === 200)
  },

  '/readyz: each cause for which masters of a Cluster are unavailable is a reason of its own': async (t) => {
    const why = ['CLUSTERDOWN. Look for slots without a master.', 'silence. Check that this master runs.']
    const store = { unavailableSince: () => -Infinity, condition: () => ({ why }) } as unknown as StoreHealth
    const { reasons } = reasonsOf(Fastify(), store, 0)
    t.same(reasons(), ['starting', ...why.map((each) => `session store unavailable: ${each}`)])
  },

  'A full Redis: /readyz is 200 with a warning, refused writes are counted, and one line is logged': async (t) => {
    const world = await startWorld(t, { redis: DURABLE })
    const { server, browser } = world
    const refused = async (): Promise<number | undefined> =>
      (await samplesOf(server.opsUrl, 'bff_session_store_refused_writes_total')).get('reason="oom"')
    const startLogin = async (): Promise<string> =>
      (await fetch(`${server.url}/auth/login`, { redirect: 'manual' })).headers.get('location') ?? ''
    await logIn(browser, server.url)
    t.same(await readiness(server.opsUrl), { status: 200, ready: true, reasons: [], warnings: [] })
    t.equal(await refused(), 0)

    const full = await fillRedis(t, urlOf(world))
    await until(async () => {
      await full.fillUp()
      return (await startLogin()).includes('auth_error=try_later')
    }, 'no new login can start')
    await until(async () => {
      await full.fillUp()
      return (await readiness(server.opsUrl)).warnings.length > 0
    }, 'the next probe notices it')
    const { status, ready, reasons, warnings } = await readiness(server.opsUrl)
    t.match({ status, ready, reasons }, { status: 200, ready: true, reasons: { length: 0 } })
    t.match(warnings, exactly(/^the session store refuses writes \(OOM\): .*maxmemory/))
    t.ok(((await refused()) ?? 0) >= 1)
    t.ok((await errors(server, 'refused')) >= 1)
    const lines = server.log.filter(({ msg }) => msg === 'the session store refuses writes')
    t.match(lines, exactly({ level: 40, reason: 'OOM' }), 'one line for all refused writes')
    t.equal(
      (await browser.fetch('/api/account/v1/nickname', CSRF)).status,
      200,
      'users who are logged in are not affected',
    )

    await full.empty()
    t.match(await startLogin(), 'oauth2/auth')
    await until(async () => (await readiness(server.opsUrl)).warnings.length === 0, 'the next probe notices that, too')
  },

  'A full Redis: /readyz of a supervisor has the warnings of its workers': async (t) => {
    const redis = await testRedis(t, DURABLE)
    const server = await serverProcess(t, {
      ...ALONE,
      REDIS_URL: redis.url,
      SESSION_SECRETS: SECRETS,
      WORKERS: '2',
    })
    t.ok(await ready(server))
    const opsUrl = `http://127.0.0.1:${server.opsPort}`
    t.same((await readiness(opsUrl)).warnings, [])
    const full = await fillRedis(t, redis.url)
    await until(async () => {
      await full.fillUp()
      await fetch(`http://127.0.0.1:${server.port}/auth/login`, { redirect: 'manual' })
      return (await readiness(opsUrl)).warnings.length > 0
    }, 'a worker warns')
    const { status, warnings } = await readiness(opsUrl)
    t.equal(status, 200)
    t.match(warnings, exactly(/\(OOM\)/))
    const refused = await samplesOf(opsUrl, 'bff_session_store_refused_writes_total')
    t.ok((refused.get('reason="oom"') ?? 0) >= 1)
    const used = await valueOf(opsUrl, 'bff_session_store_memory_used_bytes')
    const max = await valueOf(opsUrl, 'bff_session_store_memory_max_bytes')
    t.equal(max, full.maxBytes, 'the reports of two workers about one Redis are not added up')
    t.ok((used ?? 0) > full.maxBytes / 2)
  },
})
