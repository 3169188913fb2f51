import { LimitedWorld, type User } from '../support/budget/limited-world.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

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

await sideBySide({
  'POST: three users who cause 429s on purpose stop nobody, and count for nothing afterwards': async (t) => {
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
    world.retryAfter = '60'
    for (const at of [0, 1]) {
      const isKnown = async (): Promise<boolean> => (await world.order(at, innocent)).json['code'] === 'upstream_limit'
      await until(isKnown, `instance ${at} knows`)
    }
    for (const at of [0, 1]) {
      t.equal(await ofOrders(world, at, HELD), 0)
      t.equal((await world.order(at, another)).status, 200)
    }
  },

  'POST: orders of all users are held back while upstream limits the address, and no longer': async (t) => {
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
  },
})
