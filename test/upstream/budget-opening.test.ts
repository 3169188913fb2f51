import { test } from 'tap'
import { ManualBudget } from '../support/budget/manual-budget.ts'

await test('a start waits for a ledger that is away first and quiet afterwards', async (t) => {
  const world = new ManualBudget({ windows: [{ calls: 300, windowMs: 60_000 }] })
  world.isAway = true
  world.quietMs = 15_250
  let isOpen = false
  let said = 0
  void world.budget.opened(undefined, () => said++).then(() => (isOpen = true))
  await world.pass(900)
  t.equal(said, 0)
  await world.pass(9100)
  t.equal(said, 1, 'and says so once, after a second')
  world.isAway = false
  await world.pass(14_000)
  t.notOk(isOpen)
  await world.pass(3000)
  t.ok(isOpen)
  t.ok(await world.send('orders'), 'it has tokens for orders')
  await world.budget.opened(undefined, () => said++)
  await world.pass(1000)
  t.equal(said, 1, 'a start that does not wait says nothing')
})

await test('a start waits for three leases and no longer', async (t) => {
  const world = new ManualBudget({ windows: [{ calls: 300, windowMs: 60_000 }] })
  world.isAway = true
  let isOpen = false
  void world.budget.opened().then(() => (isOpen = true))
  await world.pass(44_000)
  t.notOk(isOpen)
  await world.pass(1000)
  t.ok(isOpen)
})

await test('a start that finds a report without a reply under way waits for it in the same way', async (t) => {
  const world = new ManualBudget({ windows: [{ calls: 300, windowMs: 60_000 }] })
  const { promise, resolve } = Promise.withResolvers<void>()
  world.replies = promise
  let opened = 0
  for (let each = 0; each < 2; each++) void world.budget.opened().then(() => opened++)
  await world.pass(3000)
  t.equal(opened, 0)
  resolve()
  await world.pass(600)
  t.equal(opened, 2)
})
