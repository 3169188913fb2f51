import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { samplesOf, valueOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import type { TestServer } from '../support/server/test-server.ts'
import { startWorld } from '../support/world.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

const REQUESTS = 'bff_session_store_request_duration_seconds_count'
const CSRF = { headers: { 'x-csrf': '1' } }

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

await sideBySide({
  'bff_session_store_errors_total counts failed requests to Redis by kind': async (t) => {
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
  },

  'GET /metrics: 200 while Redis hangs, without the metrics that only Redis can provide': async (t) => {
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
  },

  'bff_sessions_estimate counts the live sessions of all instances, without started logins and ended sessions': async (
    t,
  ) => {
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
  },

  'bff_sessions_estimate is estimated from a sample when there are many keys': async (t) => {
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
  },

  'bff_session_store_memory_used_bytes and _max_bytes report the memory of Redis and its limit': async (t) => {
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
  },
})
