import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { BUDGET_CLASSES } from '../../src/config/upstream-budget.ts'
import { budgetKey } from '../../src/store/keys.ts'
import { BudgetFleet } from '../support/budget/fleet.ts'
import { mostWithin } from '../support/budget/most-within.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'

/** MINUTES=15 for the long run. */
const MINUTES = Number(process.env['MINUTES'] ?? 4)

function report(t: Test, { tallies, upstream }: BudgetFleet): void {
  t.comment('class    asked   sent refused failed arrived')
  for (const each of BUDGET_CLASSES) {
    const { asked, sent, refused, failed } = tallies[each]
    const arrived = upstream.arrivals.filter(({ budgetClass }) => budgetClass === each).length
    const columns = [asked, sent, refused, failed, arrived].map((count) => String(count).padStart(7))
    t.comment(each.padEnd(7) + columns.join(''))
  }
}

/** How many reports the ledger has got. It keeps the number of the last report of each holder. */
async function reports(redis: RedisProcess): Promise<number> {
  const fields = (await askRedis(redis, ['HGETALL', budgetKey('budget', 'default')])) as Record<string, string>
  return Object.entries(fields).reduce(
    (total, [field, value]) => total + (field.startsWith('h:') ? Number(value.split(' ')[0]) : 0),
    0,
  )
}

await test('Calm: a fleet uses nine tenths of what it may, with few commands, and refuses no order', async (t) => {
  const redis = await testRedis(t)
  const fleet = await BudgetFleet.start(t, redis.url, '300/60')
  // Less than the fifth of the budget that is theirs alone, so chance refuses none. Altogether about twice the budget.
  const loading = fleet.load({ orders: 0.6, otps: 4, reads: 5 }, (1 + MINUTES) * 60_000)
  // The burst at the start is not measured.
  await delay(60_000)
  const from = { at: performance.now(), reports: await reports(redis) }
  await loading
  const to = { at: performance.now(), reports: await reports(redis) }
  report(t, fleet)
  const { arrivals } = fleet.upstream
  const most = mostWithin(60_000, arrivals)
  t.ok(most <= 300, `at most ${most} of 300 calls in any minute`)
  t.equal(fleet.tallies.orders.refused, 0, 'no order is refused')
  t.ok(fleet.tallies.reads.refused > 0 && fleet.tallies.otps.refused > 0, 'reads and one-time URLs are')
  const calls = arrivals.filter(({ at }) => at >= from.at && at < to.at).length
  // 80 % of what is not set aside: the highest ceiling of a class that asks for more than there is.
  const used = calls / (((to.at - from.at) / 60_000) * 270 * 0.8)
  t.comment(`utilisation ${used.toFixed(3)}`)
  t.ok(used >= 0.9)
  const commands = (to.reports - from.reports) / calls
  t.comment(`${commands.toFixed(3)} commands a call`)
  t.ok(commands <= 0.25)
})
