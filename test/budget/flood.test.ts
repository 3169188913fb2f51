import { test } from 'tap'
import { BudgetFleet } from '../support/budget/fleet.ts'
import { mostWithin } from '../support/budget/most-within.ts'
import { testRedis } from '../support/server/test-server.ts'

const MINUTES = 2
const USERS = 50
const BEFORE_MS = 20_000

await test('600/60, three instances: while one user floods all with orders, at most 1 % of those of fifty others are refused', async (t) => {
  const redis = await testRedis(t)
  const fleet = await BudgetFleet.start(t, redis.url, '600/60', { count: 3, users: USERS, isOdd: false })
  const over = new AbortController()
  const orders = { orders: USERS / 10, otps: 0, reads: 0 }
  // The others are there before: instances that have just started know of nobody.
  await fleet.load(orders, BEFORE_MS)
  const flooding = fleet.flood(50, 500, over.signal)
  await fleet.load(orders, MINUTES * 60_000)
  over.abort()
  await flooding
  const { asked, sent, refused, failed } = fleet.tallies.orders
  t.comment(`others ${JSON.stringify(fleet.tallies.orders)}, flood ${JSON.stringify(fleet.ofFlood)}`)
  t.equal(sent + refused + failed, asked)
  t.ok(refused <= asked * 0.01, `${refused} of ${asked} orders refused`)
  t.ok(fleet.ofFlood.refused > fleet.ofFlood.sent, 'the flood is more than there is')
  const most = mostWithin(60_000, fleet.upstream.arrivals)
  t.ok(most <= 600, `at most ${most} calls in any minute`)
})
