import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { BUDGET_CLASSES } from '../../src/config/upstream-budget.ts'
import { budgetKey } from '../../src/store/keys.ts'
import { BudgetFleet } from '../support/budget/fleet.ts'
import { mostWithin } from '../support/budget/most-within.ts'
import { askRedis, testSentinel } from '../support/redis/topologies.ts'
import { untilSlow } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'

/** MINUTES=15 for the long run. */
const MINUTES = Number(process.env['MINUTES'] ?? 4)

function report(t: Test, { tallies, ofLimited, ofFlood, upstream }: BudgetFleet): void {
  t.comment('class    asked   sent refused failed arrived')
  for (const each of BUDGET_CLASSES) {
    const { asked, sent, refused, failed } = tallies[each]
    const arrived = upstream.arrivals.filter(({ budgetClass }) => budgetClass === each).length
    const columns = [asked, sent, refused, failed, arrived].map((count) => String(count).padStart(7))
    t.comment(each.padEnd(7) + columns.join(''))
  }
  if (ofFlood.asked > 0) t.comment(`the user who floods: ${JSON.stringify(ofFlood)}`)
  if (ofLimited.asked > 0) t.comment(`the user whom upstream limits: ${JSON.stringify(ofLimited)}`)
}

function assertKept(
  t: Test,
  { upstream }: BudgetFleet,
  windows: readonly (readonly [calls: number, ms: number])[],
): void {
  for (const [calls, windowMs] of windows) {
    const most = mostWithin(windowMs, upstream.arrivals)
    t.ok(most <= calls, `at most ${most} of ${calls} calls in any window of ${windowMs / 1000} s`)
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
  assertKept(t, fleet, [[300, 60_000]])
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

await test('Storm: no window has more calls than the budget while instances, clocks and Redis fail, and upstream refuses one user', async (t) => {
  const { url, masters, nodes } = await testSentinel(t)
  const fleet = await BudgetFleet.start(t, url, '300/60,1000/600')
  await fleet.limitOne()
  const over = new AbortController()
  let alive = nodes.length
  const any = (): number => Math.floor(Math.random() * fleet.count)
  const faults: readonly [name: string, fault: () => Promise<void>][] = [
    [
      'kill -9',
      async () => {
        const at = any()
        t.comment(`instance ${at}`)
        fleet.signal(at, 'SIGKILL')
        await delay(2000)
        await fleet.launch(at)
      },
    ],
    [
      'stop for 5 s',
      async () => {
        const at = any()
        t.comment(`instance ${at}`)
        fleet.signal(at, 'SIGSTOP')
        await delay(5000)
        fleet.signal(at, 'SIGCONT')
      },
    ],
    [
      'lose the master of Redis',
      async () => {
        const [master] = await masters()
        if (master === undefined) return
        alive--
        if (alive > 0) {
          master.process.kill('SIGKILL')
          await untilSlow(async () => (await masters()).some(({ port }) => port !== master.port), 'a new master')
          return
        }
        // Nobody is left to take over.
        master.process.kill('SIGSTOP')
        await delay(4000)
        master.process.kill('SIGCONT')
      },
    ],
  ]
  const breakThings = async (): Promise<void> => {
    for (let count = 0; !over.signal.aborted; count++) {
      await delay(8000)
      const [name, fault] = faults[count % faults.length] ?? ['', async () => undefined]
      t.comment(`${Math.round(performance.now() / 1000)} s: ${name}`)
      if (!over.signal.aborted) await fault()
    }
  }
  const breaking = breakThings()
  const flooding = fleet.flood(50, 1000, over.signal)
  // Of 1,000 calls in ten minutes, 180 are for orders alone. They need 72; most of the others are lost with killed instances.
  await fleet.load({ orders: 0.12, otps: 4, reads: 4 }, MINUTES * 60_000)
  over.abort()
  await Promise.all([breaking, flooding])
  report(t, fleet)
  assertKept(t, fleet, [
    [300, 60_000],
    [1000, 600_000],
  ])
  // The tokens of an instance that is killed are lost, and one that starts does not know who floods: that costs orders of others.
  const { asked, refused } = fleet.tallies.orders
  t.ok(refused <= asked * 0.15, `${refused} of ${asked} orders refused`)
  const { ofLimited, tallies } = fleet
  t.ok(ofLimited.limited > 0, 'the user is held back')
  for (const each of BUDGET_CLASSES) t.equal(tallies[each].limited, 0, `no ${each} of others`)
})
