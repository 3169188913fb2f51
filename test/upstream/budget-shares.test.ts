import { test } from 'tap'
import type { SimulatedUser } from '../support/budget-schedule.ts'
import { flood, others, outcome } from '../support/budget-crowd.ts'
import { ManualBudget } from '../support/manual-budget.ts'

/** What all instances together may use of 600 a minute, without the part that is set aside. */
const SHARED = 540

await test('600/60, three instances: while one user floods all with orders, at most 1 % of those of fifty others are refused', async (t) => {
  const { of, all, reportsPerCall } = await outcome({ users: [...others(50), flood()] })
  t.comment(`others ${JSON.stringify(of(/other/))}, flood ${JSON.stringify(of(/flood/))}`)
  t.comment(`${(all.aMinute / SHARED).toFixed(3)} used, ${reportsPerCall.toFixed(3)} reports a call`)
  t.ok(of(/other/).part <= 0.01, `${of(/other/).refused} refused`)
  t.ok(of(/flood/).aMinute <= SHARED / 2)
  t.ok(all.aMinute >= SHARED * 0.8)
})

await test('300/60,1000/600: one user who floods leaves room in the longer window for orders of others that come rarely', async (t) => {
  const rare = others(6).map((user) => Object.assign(user, { everyMs: 50_000 }))
  const reads: readonly SimulatedUser[] = Array.from({ length: 8 }, (_value, at) => ({
    subject: `reader ${at}`,
    budgetClass: 'otps',
    everyMs: 2000,
  }))
  const { of } = await outcome({
    users: [...rare, ...reads, flood()],
    budget: [
      [300, 60_000],
      [1000, 600_000],
    ],
    instances: 5,
    minutes: 20,
    fromMs: 10 * 60_000,
  })
  t.comment(`others ${JSON.stringify(of(/other/))}, flood ${JSON.stringify(of(/flood/))}`)
  t.ok(of(/other/).part <= 0.02, `${of(/other/).refused} refused`)
})

await test('calls that are refused to a session with its share are no reason to lease tokens', async (t) => {
  const world = new ManualBudget({ windows: [{ calls: 300, windowMs: 60_000 }], instances: 3 })
  await world.budget.opened()
  t.ok(await world.send('orders', 'modest'))
  for (let second = 0; second < 8; second++) {
    await world.sendMany(100, 'orders', 'greedy')
    await world.send('orders', 'modest')
    await world.pass(1000)
  }
  await world.pass(15_000)
  const leased = world.budget.leased('orders')
  t.ok(leased <= 30, `${leased} tokens are leased`)
})
