import { test } from 'tap'
import { LimitedWorld, type User } from '../support/budget/limited-world.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'
import { testServer } from '../support/server/test-server.ts'

const HELD = 'bff_upstream_budget_held_back'
const USERS = 'bff_upstream_limited_users'

/** The value of a metric of an instance for orders. */
async function ofOrders(world: LimitedWorld, at: number, name: string): Promise<number | undefined> {
  return (await samplesOf(world.servers[at]?.opsUrl ?? '', name)).get('class="orders"')
}

/** Resolves once both instances know that a user more is held back. */
async function refused(world: LimitedWorld, user: User): Promise<void> {
  const instances = [0, 1]
  const before = await Promise.all(instances.map((at) => ofOrders(world, at, USERS)))
  await world.order(0, user)
  for (const [each, at] of instances.entries()) {
    await until(async () => ((await ofOrders(world, at, USERS)) ?? 0) > (before[each] ?? 0), `instance ${at} knows`)
  }
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

/** Users at an address of their own each whom upstream limits. */
async function limitedUsers(world: LimitedWorld, count: number): Promise<User[]> {
  const users = await Promise.all(Array.from({ length: count }, () => world.user()))
  for (const { token } of users) world.limited.add(token)
  return users
}

/** Resolves once the instances say whether orders are held back. */
async function untilHeld(world: LimitedWorld, isHeld: boolean): Promise<void> {
  for (const at of [0, 1]) {
    await until(async () => (await ofOrders(world, at, HELD)) === Number(isHeld), `instance ${at} knows`)
  }
}

await test('POST: three users who cause 429s on purpose stop nobody, and count for nothing afterwards', async (t) => {
  const world = await LimitedWorld.start(t)
  world.retryAfter = '1'
  const attackers = await limitedUsers(world, 3)
  const [innocent, another] = [await world.user(), await world.user()]
  const refuseAll = (): Promise<void[]> =>
    Promise.all(
      attackers.map((attacker) =>
        // Each is held back for a second after its last 429.
        until(async () => (await world.order(0, attacker)).text === '{"error":"slow down"}', 'a 429 of upstream'),
      ),
    )
  await refuseAll()
  t.equal((await world.order(0, innocent)).status, 200, 'the probe')
  await refuseAll()
  // If they had raised a suspicion again, this one would be a probe, and its 429 would hold the class back.
  world.limited.add(innocent.token)
  await refused(world, innocent)
  for (const at of [0, 1]) {
    t.equal(await ofOrders(world, at, HELD), 0)
    t.equal((await world.order(at, another)).status, 200)
  }
})

await test('POST: orders of all users are held back while upstream limits the address, and no longer', async (t) => {
  const world = await LimitedWorld.start(t)
  world.isAddressLimited = true
  world.retryAfter = '60'
  const users = await Promise.all(Array.from({ length: 12 }, () => world.user()))
  const next = (): User => users.shift() ?? { cookie: '', token: '', address: '' }
  for (let count = 0; count < 3; count++) await refused(world, next())
  t.equal(await ofOrders(world, 0, HELD), 0, 'three users raise a suspicion')
  t.equal((await world.order(1, next())).text, '{"error":"slow down"}', "a fourth user's order is the probe")
  await untilHeld(world, true)
  const probes = (): number[] => world.upstream.arrivals.slice(4).map(({ at }) => at)
  const heldAt = world.upstream.arrivals.at(-1)?.at ?? 0
  const { json, headers } = await world.order(0, next())
  t.match(json, { code: 'upstream_budget', status: 429, title: /All users together/ })
  t.ok(Number(headers['retry-after']) > 50 && Number(headers['retry-after']) <= 60)
  t.equal(probes().length, 0)

  const asked = [next(), next(), next(), next()]
  // All ask at once, of both instances, again and again: one of them sends a probe when it is time.
  const crowd = (): Promise<unknown> =>
    Promise.all(asked.flatMap((user) => [world.order(0, user), world.order(1, user)]))
  await until(async () => {
    await crowd()
    return probes().length >= 2
  }, 'two more probes were sent')
  const [first = 0, second = 0] = probes()
  t.ok(first - heldAt >= 990, `the first after ${Math.round(first - heldAt)} ms`)
  t.ok(second - first >= 1990, `the second after ${Math.round(second - first)} ms`)
  t.equal(probes().length, 2, 'one over all instances')

  world.isAddressLimited = false
  const healthy = next()
  await until(async () => (await world.order(0, healthy)).status === 200, 'a probe lifts it', 15_000)
  await untilHeld(world, false)
  for (const at of [0, 1]) t.equal((await world.order(at, next())).status, 200)
})
