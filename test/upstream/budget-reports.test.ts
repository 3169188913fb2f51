import { test } from 'tap'
import { MemoryLedger } from '../../src/store/ledger/memory-ledger.ts'
import { UpstreamBudget } from '../../src/upstream/budget/upstream-budget.ts'
import { outcome, ScriptedBudget, turns } from '../support/budget/scripted-budget.ts'

await test('left() is what orders have left in each window, while the ledger tells it', async (t) => {
  const windows = [
    { calls: 100, windowMs: 60_000 },
    { calls: 200, windowMs: 600_000 },
  ]
  const world = new ScriptedBudget({ windows })
  const left = () => world.budget.left().map(({ calls }) => calls)
  t.same(left(), [undefined, undefined])
  void world.budget.opened()
  await world.reply({ used: [30, 230], granted: { orders: 1 } })
  t.same(world.budget.left(), [
    { windowMs: 60_000, calls: 70, limit: 100 },
    { windowMs: 600_000, calls: 0, limit: 200 },
  ])
  void world.budget.admit('reads', 'a')
  await world.reply()
  t.same(left(), [undefined, undefined])
})

await test('spread() leaves room for calls of other classes, as this process has seen them, and for no one-time URLs', async (t) => {
  const world = await ScriptedBudget.with({ granted: { orders: 4, otps: 1 }, used: [50] })
  const { budget } = world
  t.equal(budget.spread(81), 160_000, 'none was seen, so all 50 may be others: there is room for 30 a minute')
  void budget.admit('otps', 'a')
  world.now += 1000
  void budget.admit('otps', 'a')
  await world.reply({ used: [50] })
  t.equal(budget.spread(81), 60_000, 'all are one-time URLs, for which there is room for 80')
})

await test('close() refuses what waits, returns the tokens, and asks for nothing any more', async (t) => {
  const world = await ScriptedBudget.with({ granted: { orders: 4 } })
  const { budget, refusals } = world
  t.equal(world.delays.length, 1)
  const waiting = budget.admit('reads', 'a')
  let isClosed = false
  const closed = budget.close().then(() => (isClosed = true))
  t.match(await waiting, { is: 'refused' })
  await world.reply({})
  t.equal(isClosed, false, 'it returns them')
  await world.reply({})
  await closed
  t.ok(refusals.isClosed)
  t.same(world.delays, [])
  t.equal(outcome(budget.admit('reads', 'a')), 'refused')
  t.equal(world.reports, 0)
  const away = await ScriptedBudget.with({ granted: { orders: 4 } })
  void away.budget.admit('reads', 'a')
  await away.reply()
  await away.budget.close()
  t.equal(away.reports, 0, 'a ledger that is away is not told')
})

await test('the next report is due after two thirds of a lease, or when orders that are short may have tokens', async (t) => {
  for (const [orders, waitMs, delayMs] of [
    [4, 0, 1000],
    [4, 300, 1000],
    [1, 0, 1000],
    [1, 300, 300],
  ] as const) {
    const world = await ScriptedBudget.with({ granted: { orders }, waitMs: { orders: waitMs } })
    t.same(world.delays, [delayMs], `${orders} tokens, ${waitMs} ms`)
  }
  const world = await ScriptedBudget.with({ granted: { orders: 4 } })
  for (let second = 1; second <= 10; second++) {
    t.equal(world.reports, 0, `after ${second - 1} seconds`)
    world.now += 1000
    await world.run()
  }
  t.equal(world.reports, 1, 'the lease is one of 15 seconds')
  await world.reply()
  t.same(world.delays, [500], 'a ledger that is away is asked again')
})

await test('a budget of a store has the ledger and the refusals of its name, and hears when those change', async (t) => {
  const opened: unknown[] = []
  let reads = 0
  const listeners: (() => void)[] = []
  const store = {
    openLedger: (name: string) => {
      opened.push(['ledger', name])
      return Promise.resolve(new MemoryLedger() as never)
    },
    openRefusals: (name: string, onChange: () => void) => {
      opened.push(['refusals', name])
      listeners.push(onChange)
      return Promise.resolve({
        read: () => {
          reads++
          return Promise.resolve({ version: '', text: '', now: Date.now() })
        },
        write: () => Promise.resolve(''),
        close: () => undefined,
      })
    },
  }
  const config = {
    name: 'calls',
    windows: [{ calls: 100, windowMs: 60_000 }],
    shares: { orders: 1, otps: 1, reads: 1 },
    alone: 0,
    instances: 1,
  }
  const budget = await UpstreamBudget.open(config, store, (user) => user)
  t.same(opened, [
    ['ledger', 'calls'],
    ['refusals', 'calls'],
  ])
  await turns()
  t.equal(reads, 1)
  for (const change of listeners) change()
  await turns()
  t.equal(reads, 2)
  await budget.close()
})
