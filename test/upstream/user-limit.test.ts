import { test } from 'tap'
import { LimitedWorld } from '../support/budget/limited-world.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'
import { testServer } from '../support/server/test-server.ts'

const HELD = 'bff_upstream_budget_held_back'
const USERS = 'bff_upstream_limited_users'

/** The value of a metric of an instance for orders. */
async function ofOrders(world: LimitedWorld, at: number, name: string): Promise<number | undefined> {
  return (await samplesOf(world.servers[at]?.opsUrl ?? '', name)).get('class="orders"')
}

await test("upstream's 429 to one user holds back that user alone", async (t) => {
  const world = await LimitedWorld.start(t)
  const other = await world.user({ subject: 'dave' })

  await t.test('POST: on every instance, in all sessions of the subject; the first 429 passes', async (t) => {
    const [first, second] = [await world.user({ subject: 'carol' }), await world.user({ subject: 'carol' })]
    world.limited.add(first.token)
    const passed = await world.order(0, first)
    t.match(passed, { status: 429, text: '{"error":"slow down"}', headers: { 'retry-after': /^30$/ } })
    const answeredAt = performance.now()
    await until(async () => (await ofOrders(world, 1, USERS)) === 1, 'the other instance knows')
    t.comment(`known after ${Math.round(performance.now() - answeredAt)} ms, the scrape included`)
    const arrived = world.upstream.arrivals.length
    for (const [at, user] of [
      [0, first],
      [0, second],
      [1, first],
      [1, second],
    ] as const) {
      const { json, headers } = await world.order(at, user)
      t.match(json, { code: 'upstream_limit', status: 429, title: /your calls/ })
      t.equal(json['outcome'], undefined)
      const seconds = Number(headers['retry-after'])
      t.ok(seconds > 20 && seconds <= 30, `Retry-After is ${seconds}`)
    }
    t.equal(world.upstream.arrivals.length, arrived, 'nothing was sent')
    for (const at of [0, 1]) t.equal((await world.order(at, other)).status, 200, 'orders of others go on')
    t.equal((await world.read(1, second)).status, 200, 'and so do the reads of the same user')
    t.equal(await ofOrders(world, 0, HELD), 0)
    const counted = await samplesOf(world.servers[0]?.opsUrl ?? '', 'bff_upstream_limit_refusals_total')
    t.equal(counted.get('class="orders"'), 2)
    const calls = await samplesOf(world.servers[0]?.opsUrl ?? '', 'bff_upstream_budget_calls_total')
    t.equal(calls.get('class="orders",outcome="refused"'), 0, 'the budget has refused none')
  })

  await t.test('an instance that starts later knows it', async (t) => {
    const late = await testServer(t, world.settings)
    const user = await world.user({ subject: 'carol' })
    t.match((await world.orderBy(late.port, user)).json, { code: 'upstream_limit' })
  })

  await t.test('POST with an Idempotency-Key: the key is free again', async (t) => {
    const user = await world.user({ subject: 'erin' })
    world.limited.add(user.token)
    world.retryAfter = '1'
    await world.order(0, user)
    const key = { 'idempotency-key': 'k' }
    t.match((await world.order(0, user, key)).json, { code: 'upstream_limit' })
    world.limited.clear()
    await until(async () => (await world.order(0, user, key)).status === 200, 'the second is over')
    world.retryAfter = '30'
  })

  await t.test('GET /ws/trading/:accountId: 4429 upstream_limit with the time that is left', async (t) => {
    const user = await world.user({ subject: 'frank' })
    t.equal(await world.socket(0, user), '4403 upstream_error', 'as upstream answers')
    world.limited.add(user.token)
    t.match(await world.socket(0, user), /^4429 rate_limited;retry_after=30$/, 'the first passes')
    const arrived = world.upstream.arrivals.length
    t.match(await world.socket(0, user), /^4429 upstream_limit;retry_after=(2\d|30)$/)
    t.equal(world.upstream.arrivals.length, arrived)
    t.equal(await world.socket(0, other), '4403 upstream_error')
  })

  await t.test('GET: a session without a subject, and no other session of its address', async (t) => {
    const [one, neighbour] = [
      await world.user({ address: '192.0.2.200' }),
      await world.user({ address: '192.0.2.200' }),
    ]
    world.limited.add(one.token)
    t.equal((await world.read(0, one)).text, '{"error":"slow down"}')
    t.match((await world.read(0, one)).json, { code: 'upstream_limit' })
    t.equal((await world.read(0, neighbour)).status, 200)
  })

  await t.test('GET: many sessions at one address, or at one IPv6 site, raise no suspicion', async (t) => {
    const addresses = [
      '2001:db8:7:1::1',
      '2001:db8:7:2::1',
      '2001:db8:7:ffff::9',
      ...Array<string>(6).fill('192.0.2.200'),
    ]
    for (const [count, address] of addresses.entries()) {
      const user = await world.user({ address })
      world.limited.add(user.token)
      // A suspicion would make one of them the probe, and its 429 hold the class.
      t.equal((await world.read(count % 2, user)).text, '{"error":"slow down"}')
    }
    for (const at of [0, 1]) t.equal((await world.read(at, other)).status, 200)
  })
})
