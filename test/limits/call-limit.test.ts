import { test, type Test } from 'tap'
import { CallLimit } from '../../src/limits/call-limit.ts'
import type { RedisStore } from '../../src/store/redis-store.ts'
import { earlyInAMinute } from '../support/time/clock-minute.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { TRADING, ACCOUNTS } from '../support/user.ts'
import { startWorld, API, RELAY } from '../support/world.ts'
const BULK = '/api/trading/v1/options/contracts/bulk-purchase/real'

async function limitOn(t: Test, url: string, perMinute: number): Promise<{ limit: CallLimit; store: RedisStore }> {
  const store = await connectedStore(t, url)
  return { limit: new CallLimit(store, perMinute), store }
}

await test('API_REQUESTS_PER_MINUTE counts the calls and the one-time URLs of a session on all instances', async (t) => {
  const settings = { API_REQUESTS_PER_MINUTE: '6' }
  const world = await startWorld(t, { ...RELAY, redis: true, settings })
  const other = await world.instance()
  const { cookie } = world
  const call = (port: number) => fetch(`http://localhost:${port}${ACCOUNTS}`, { headers: { cookie, 'x-csrf': '1' } })
  const ports = [world.server.port, other.port]
  await earlyInAMinute()
  for (let count = 0; count < 4; count++) t.equal((await call(ports[count % 2] ?? 0)).status, 200)
  for (const port of ports) await world.socket(TRADING, { at: { port } }).opened()
  await until(() => world.upstream.open === 2)
  for (const port of ports) {
    const refused = await call(port)
    t.equal(refused.status, 429)
    const seconds = Number(refused.headers.get('retry-after'))
    t.ok(seconds >= 1 && seconds <= 60, `${seconds} s`)
    const { code, reason } = await world.socket(TRADING, { at: { port } }).closed
    t.equal(code, 4429)
    t.match(reason, /^rate_limited;retry_after=([1-9]|[1-5][0-9]|60)$/)
  }
  t.equal(world.upstream.otpRequests.length, 2, 'nothing was sent for a refused socket')
  await until(() => world.upstream.open === 2, 'its permit is given back')
  const refusals = await world.metric('bff_relay_refusals_total')
  t.equal(refusals.get('reason="rate_limited"'), 1, 'the label has no time')
})

await test('API_REQUESTS_PER_MINUTE counts a repeated call with an Idempotency-Key, too', async (t) => {
  const { upstream, call } = await startWorld(t, { ...API, settings: { API_REQUESTS_PER_MINUTE: '2' } })
  await earlyInAMinute()
  const post = () => call('POST', ACCOUNTS, { body: '{}', headers: { 'idempotency-key': 'once' } })
  t.equal((await post()).status, 200)
  t.match(await post(), { status: 200, headers: { 'idempotency-replayed': 'true' } })
  t.match((await post()).json, { code: 'rate_limited' })
  t.match((await call('POST', BULK)).json, { code: 'rate_limited' }, 'a call without a bearer, too')
  t.equal(upstream.requests.length, 1)
  t.equal((await call('GET', '/api/v1/health')).status, 200, 'a call without a session has no limit')
})

await test('most calls ask nobody, and a refusal is remembered', async (t) => {
  const redis = await testRedis(t)
  const { limit } = await limitOn(t, redis.url, 1000)
  const client = await storeClient(t, { redis })
  await earlyInAMinute()
  let allowed = 0
  for (let count = 0; count < 1500; count++) if ((await limit.count('session:a')).is === 'allowed') allowed++
  t.equal(allowed, 1000)
  const asked = Number(/cmdstat_getdel:calls=(\d+)/.exec(await client.info('commandstats'))?.[1])
  t.comment(`${asked} questions for 1,500 calls`)
  t.ok(asked <= 13)
  t.notOk(limit.count('session:a') instanceof Promise, 'a refusal asks nobody')
})

await test('calls of a session that come at once ask together, and get the limit exactly', async (t) => {
  const redis = await testRedis(t)
  const { limit: one } = await limitOn(t, redis.url, 50)
  const { limit: other } = await limitOn(t, redis.url, 50)
  await earlyInAMinute()
  const verdicts = await Promise.all(
    Array.from({ length: 120 }, async (_, index) => (index % 2 === 0 ? one : other).count('session:a')),
  )
  t.equal(verdicts.filter(({ is }) => is === 'allowed').length, 50)
})

await test('without Redis each process counts on its own, and asks again when it is back', async (t) => {
  const redis = await testRedis(t)
  const { limit, store } = await limitOn(t, redis.url, 4)
  await earlyInAMinute()
  const take = async (count: number): Promise<number> => {
    let allowed = 0
    for (let calls = 0; calls < count; calls++) if ((await limit.count('session:a')).is === 'allowed') allowed++
    return allowed
  }
  t.equal(await take(1), 1)
  redis.process.kill('SIGSTOP')
  await until(() => store.unavailableSince() !== undefined)
  t.equal(await take(9), 5, 'the one that was leased, and then four of its own')
  redis.process.kill('SIGCONT')
  await until(() => store.unavailableSince() === undefined)
  t.equal(await take(9), 2, 'what is left in Redis')
})
