import { test } from 'tap'
import type { SimulatedUser } from '../support/budget/schedule.ts'
import { flood, ordersOfOthers, others, outcome } from '../support/budget/crowd.ts'
import { ManualBudget } from '../support/budget/manual-budget.ts'

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

await test('600/60, three instances: in the first minutes of a flood, at most 1 % of the orders of fifty others are refused', async (t) => {
  const users = [...others(50), flood({ fromMs: 20_000 })]
  const orders = await ordersOfOthers({ users, minutes: 2.5 }, 16)
  t.comment(JSON.stringify(orders))
  // On average over these seeds: a single run may have twice as many.
  t.ok(orders.part <= 0.005)
})

await test('600/60, three instances: a flood that begins with the others cannot take half before they have asked', async (t) => {
  const orders = await ordersOfOthers({ users: [...others(50), flood({ fromMs: 0 })], minutes: 2 }, 16)
  t.comment(JSON.stringify(orders))
  t.ok(orders.part <= 0.03)
})

/** Six users with a call a minute each, and eight with many, which together ask for more than there is. */
const RARE_AND_OFTEN: readonly SimulatedUser[] = [
  ...others(6, 'orders', 50_000),
  ...Array.from({ length: 8 }, (_value, at) => ({
    subject: `reader ${at}`,
    budgetClass: 'otps' as const,
    everyMs: 1000,
  })),
]
const TWO_WINDOWS = [
  [300, 60_000],
  [1000, 600_000],
] as const

await test('300/60,1000/600: one user who floods leaves room in the longer window for orders of others that come rarely', async (t) => {
  const { of } = await outcome({
    users: [...RARE_AND_OFTEN, flood()],
    budget: TWO_WINDOWS,
    instances: 5,
    minutes: 20,
    fromMs: 10 * 60_000,
  })
  t.comment(`others ${JSON.stringify(of(/other/))}, flood ${JSON.stringify(of(/flood/))}`)
  t.ok(of(/other/).part <= 0.02, `${of(/other/).refused} refused`)
})

await test('300/60,1000/600, a crash every minute: instances that start do not hand out what is left for others', async (t) => {
  const users = [...RARE_AND_OFTEN, flood()]
  const orders = await ordersOfOthers({ users, budget: TWO_WINDOWS, instances: 4, minutes: 15, crashes: 15 }, 4)
  t.comment(JSON.stringify(orders))
  t.ok(orders.part <= 0.02)
})

await test('calls that are refused to a session with its share are no reason to lease tokens', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 300, windowMs: 60_000 }], instances: 3 })
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
