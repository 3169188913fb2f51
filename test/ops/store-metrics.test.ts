import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { samplesOf, valueOf } from '../support/telemetry/metrics.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { fillRedis } from '../support/redis/full-redis.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { type TestServer, testRedis, SECRETS } from '../support/server/test-server.ts'
import { type World, startWorld } from '../support/world.ts'
import { ALONE } from '../support/server/settings.ts'
import { exactly } from '../support/exactly.ts'

const REQUESTS = 'bff_session_store_request_duration_seconds_count'
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

await test('Round trips to Redis are measured, and an API call with a cached session makes none', async (t) => {
  const { server, browser } = await startWorld(t, { redis: true })
  const before = (await valueOf(server.opsUrl, REQUESTS)) ?? Number.NaN
  await logIn(browser, server.url)
  const call = async (): Promise<void> => {
    t.equal((await browser.fetch('/api/account/v1/nickname', CSRF)).status, 200)
  }
  await call()
  const after = (await valueOf(server.opsUrl, REQUESTS)) ?? Number.NaN
  t.ok(after - before >= 5, `a login makes ${after - before} round trips`)
  let last = after
  await until(async () => {
    const first = last
    for (let count = 0; count < 20; count++) await call()
    last = (await valueOf(server.opsUrl, REQUESTS)) ?? Number.NaN
    // Each of the two scrapes makes one, which it counts or not. After a standstill of this process a session is read again.
    return last - first <= 2
  }, 'twenty calls make no round trip')
  for (const kind of ['down', 'timeout', 'lost', 'refused']) t.equal(await errors(server, kind), 0, kind)
})

await test('bff_session_store_errors_total counts failed requests to Redis by kind', async (t) => {
  const { server, redis } = await startWorld(t, { redis: true })
  const start = async (): Promise<void> => {
    await fetch(`${server.url}/auth/login`, { redirect: 'manual' })
  }
  redis?.process.kill('SIGSTOP')
  await start()
  await until(async () => (await errors(server, 'timeout')) > 0, 'a request without a reply is counted')
  await start()
  t.ok((await errors(server, 'down')) > 0, 'a request that was not sent is counted')
  redis?.process.kill('SIGCONT')
})

await test('GET /metrics: 200 while Redis hangs, without the metrics that only Redis can provide', async (t) => {
  const { server, redis } = await startWorld(t, { redis: true })
  t.equal(await valueOf(server.opsUrl, 'bff_sessions_estimate'), 0)
  redis?.process.kill('SIGSTOP')
  await until(async () => (await valueOf(server.opsUrl, 'bff_session_store_up')) === 0)
  await until(
    async () => (await valueOf(server.opsUrl, 'bff_sessions_estimate')) === undefined,
    'the outdated value disappears',
  )
  t.equal(await valueOf(server.opsUrl, 'bff_session_store_memory_used_bytes'), undefined)
  redis?.process.kill('SIGCONT')
  await until(async () => (await valueOf(server.opsUrl, 'bff_sessions_estimate')) === 0, 'the value reappears')
})

await test('bff_sessions_estimate counts the live sessions of all instances, without started logins and ended sessions', async (t) => {
  const world = await startWorld(t, { redis: true })
  const other = await world.instance()
  const browsers = [world.browser, new JarBrowser(), new JarBrowser()]
  for (const browser of browsers) await world.visitor(browser).logIn()
  for (let count = 0; count < 5; count++) {
    await fetch(`${world.server.url}/auth/login`, { redirect: 'manual' })
  }
  const counted = (count: number) => async (): Promise<boolean> => {
    const counts = await Promise.all(
      [world.server, other].map(({ opsUrl }) => valueOf(opsUrl, 'bff_sessions_estimate')),
    )
    return counts.every((each) => each === count)
  }
  await until(counted(3), 'three sessions')
  t.equal((await world.logOut()).status, 204)
  await until(counted(2), 'two sessions without the tombstone')
})

await test('bff_sessions_estimate is estimated from a sample when there are many keys', async (t) => {
  const world = await startWorld(t, { redis: true })
  const client = await world.storeClient()
  const addKeys = (prefix: string, count: number): Promise<unknown> =>
    Promise.all(Array.from({ length: count }, (_, index) => client.set(prefix + String(index).padStart(43, '0'), '')))
  await addKeys('bff:1:session:', 6000)
  await addKeys('bff:1:login:', 4000)
  await until(
    async () => ((await valueOf(world.server.opsUrl, 'bff_sessions_estimate')) ?? 0) > 1000,
    'the keys are sampled again',
  )
  const estimate = (await valueOf(world.server.opsUrl, 'bff_sessions_estimate')) ?? Number.NaN
  // Redis picks the sample. The bounds are six standard errors wide, so a false alarm is one in hundreds of millions.
  t.ok(estimate > 4100 && estimate < 7900, `${estimate} of 6000`)
})

await test('bff_session_store_memory_used_bytes and _max_bytes report the memory of Redis and its limit', async (t) => {
  const world = await startWorld(t, { redis: true })
  const { opsUrl } = world.server
  const client = await world.storeClient()
  t.equal(await valueOf(opsUrl, 'bff_session_store_memory_max_bytes'), 0, 'no limit')
  t.ok(((await valueOf(opsUrl, 'bff_session_store_memory_used_bytes')) ?? 0) > 500_000)
  await client.configSet('maxmemory', '100mb')
  await until(
    async () => (await valueOf(opsUrl, 'bff_session_store_memory_max_bytes')) === 100 * 1_048_576,
    'the new limit is reported',
  )
})

await test('/readyz: 503 once a store that was reached has been gone for READY_GRACE_SECONDS', async (t) => {
  const { server, redis } = await startWorld(t, { redis: true, settings: { READY_GRACE_SECONDS: '1' } })
  t.equal((await readiness(server.opsUrl)).status, 200)
  const stoppedAt = Date.now()
  redis?.process.kill('SIGSTOP')
  await until(async () => (await readiness(server.opsUrl)).status === 503)
  t.ok(Date.now() - stoppedAt >= 1000)
  t.match((await readiness(server.opsUrl)).reasons, exactly(/^session store unavailable: \w+\. Check /))
  redis?.process.kill('SIGCONT')
  await until(async () => (await readiness(server.opsUrl)).status === 200)
})

/** Without the warning of a Redis that forgets everything at a restart. */
const DURABLE = ['--appendonly', 'yes']

await test('A full Redis: /readyz is 200 with a warning, refused writes are counted, and one line is logged', async (t) => {
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
})

await test('A full Redis: /readyz of a supervisor has the warnings of its workers', async (t) => {
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
})
