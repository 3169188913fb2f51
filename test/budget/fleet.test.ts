import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { BUDGET_CLASSES } from '../../src/config/upstream-budget.ts'
import { BudgetFleet } from '../support/budget-fleet.ts'
import { mostWithin } from '../support/most-within.ts'
import { askRedis, testSentinel } from '../support/redis-topologies.ts'
import { untilSlow } from '../support/until.ts'
import { testRedis } from '../support/world.ts'

/** MINUTES=15 for the long run. */
const MINUTES = Number(process.env['MINUTES'] ?? 2)

function report(t: Test, { tallies, upstream }: BudgetFleet): void {
  t.comment('class    asked   sent refused failed arrived')
  for (const each of BUDGET_CLASSES) {
    const { asked, sent, refused, failed } = tallies[each]
    const arrived = upstream.arrivals.filter(({ budgetClass }) => budgetClass === each).length
    const columns = [asked, sent, refused, failed, arrived].map((count) => String(count).padStart(7))
    t.comment(each.padEnd(7) + columns.join(''))
  }
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

await test('Calm: a fleet uses nine tenths of what it may, with few commands, and refuses no order', async (t) => {
  const redis = await testRedis(t)
  const fleet = await BudgetFleet.start(t, redis.url, '300/60')
  const evals = async (): Promise<number> =>
    Number(/cmdstat_eval:calls=(\d+)/.exec(String(await askRedis(redis, ['INFO', 'commandstats'])))?.[1] ?? 0)
  const before = await evals()
  const started = performance.now()
  // Twice the budget. Orders need little more than the fifth that is theirs alone.
  await fleet.load({ orders: 1, otps: 4, reads: 5 }, MINUTES * 60_000)
  const minutes = (performance.now() - started) / 60_000
  report(t, fleet)
  const { arrivals } = fleet.upstream
  assertKept(t, fleet, [[300, 60_000]])
  t.equal(fleet.tallies.orders.refused, 0, 'no order is refused')
  t.ok(fleet.tallies.reads.refused > 0 && fleet.tallies.otps.refused > 0, 'reads and one-time URLs are')
  // 80 % of what is not set aside: the highest ceiling of a class that asks for more than there is.
  const used = arrivals.length / (minutes * 270 * 0.8)
  t.comment(`utilisation ${used.toFixed(3)}`)
  t.ok(used >= 0.9)
  const commands = ((await evals()) - before) / arrivals.length
  t.comment(`${commands.toFixed(3)} commands a call`)
  t.ok(commands <= 0.25)
})

await test('Storm: no window has more calls than the budget while instances, clocks and Redis fail', async (t) => {
  const { url, masters, nodes } = await testSentinel(t)
  const fleet = await BudgetFleet.start(t, url, '300/60,1000/600')
  const over = new AbortController()
  let alive = nodes.length
  const any = (): number => Math.floor(Math.random() * fleet.count)
  const faults: readonly [name: string, fault: () => Promise<void>][] = [
    [
      'kill -9',
      async () => {
        const at = any()
        fleet.signal(at, 'SIGKILL')
        await delay(2000)
        await fleet.launch(at)
      },
    ],
    [
      'stop for 5 s',
      async () => {
        const at = any()
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
  await fleet.load({ orders: 3, otps: 4, reads: 4 }, MINUTES * 60_000)
  over.abort()
  await breaking
  report(t, fleet)
  assertKept(t, fleet, [
    [300, 60_000],
    [1000, 600_000],
  ])
})
