import { test } from 'tap'
import { LedgerModel } from '../support/budget/ledger-model.ts'
import { ManualBudget } from '../support/budget/manual-budget.ts'
import { exactly } from '../support/exactly.ts'

const WINDOW = [{ calls: 100, windowMs: 10_000 }]

await test('without the ledger a process spends its lease, and then its part, in every window', async (t) => {
  const world = await ManualBudget.opened({ windows: WINDOW, alone: 0.3, instances: 3 })
  world.isAway = true
  const ready = await world.sendMany(20, 'orders')
  t.ok(ready >= 1 && ready <= 4, `${ready} orders with the tokens at hand`)
  t.equal(await world.sendMany(20, 'orders'), 0, 'a process that is younger than the window has no part')
  await world.pass(11_250)
  t.equal(await world.sendMany(8, 'reads'), 5, 'half of its part for reads')
  t.equal(await world.sendMany(20, 'orders'), 5, 'the rest for orders')
  await world.pass(10_000)
  t.equal(await world.sendMany(20, 'orders'), 0, 'the margin is kept')
  await world.pass(1250)
  t.equal(await world.sendMany(20, 'orders'), 10)
  t.equal(world.budget.counts.alone, 20)
  world.isAway = false
  await world.pass(7000)
  const shared = await world.sendMany(80, 'orders')
  t.ok(shared >= 66, `and ${shared} of the shared part when the ledger is back`)
  await world.pass(11_250)
  await world.sendMany(200, 'orders')
  t.equal(world.budget.counts.alone, 20, 'and none of its own part, even when the shared one is used up')
})

await test('what is left is not known before the ledger has replied, nor while it is away', async (t) => {
  const world = new ManualBudget({})
  const known = (): boolean[] => [world.budget.left()[0]?.calls !== undefined, world.budget.isAlone]
  t.same(known(), [false, false])
  await world.budget.opened()
  t.same(known(), [true, false])
  const { promise, reject } = Promise.withResolvers<void>()
  world.isAway = true
  await world.pass(7000)
  t.same(known(), [false, true])
  world.isAway = false
  world.replies = promise
  await world.pass(1000)
  t.same(known(), [false, true], 'nor while an attempt to reach it is under way')
  world.replies = Promise.resolve()
  reject(new Error('no reply in time'))
  await world.pass(1000)
  t.same(known(), [true, false])
  t.match(world.budget.left(), exactly({ windowMs: 10_000, limit: 100 }))
})

await test('a call waits 900 ms for a ledger that is silent, and then has a token of the part set aside, or none', async (t) => {
  for (const alone of [0.3, 0]) {
    const world = await ManualBudget.opened({ windows: WINDOW, alone })
    await world.pass(11_250)
    const { promise, resolve } = Promise.withResolvers<void>()
    world.replies = promise
    // The tokens at hand, so that the next call has to wait for the ledger.
    while (world.budget.leased('orders') > 0) await world.send('orders')
    let sent: boolean | undefined
    void world.send('orders').then((isSent) => (sent = isSent))
    await world.pass(899)
    t.equal(sent, undefined)
    await world.pass(1)
    t.equal(sent, alone > 0)
    t.ok(world.budget.isAlone)
    await world.pass(30_000)
    t.equal(await world.send('orders'), alone > 0, 'while it goes on, no call waits at all')
    t.equal(world.budget.counts.alone, alone > 0 ? 2 : 0)
    resolve()
    await world.pass(500)
    t.notOk(world.budget.isAlone)
    t.ok(await world.send('orders'), 'the ledger has replied')
    t.equal(world.budget.counts.alone, alone > 0 ? 2 : 0)
  }
})

await test('whenever the ledger goes away, a process keeps its tokens for five seconds at least', async (t) => {
  for (let phaseMs = 0; phaseMs <= 12_000; phaseMs += 500) {
    const world = await ManualBudget.opened({ windows: [{ calls: 300, windowMs: 60_000 }] })
    await world.pass(phaseMs)
    world.isAway = true
    await world.pass(4900)
    t.ok(await world.send('orders'), `after ${phaseMs} ms`)
  }
})

await test('a second after the time of day has jumped, a process has tokens again that outlast the ledger', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 300, windowMs: 60_000 }] })
  world.sleep(60_000)
  await world.pass(1000)
  world.isAway = true
  await world.pass(4900)
  t.equal(await world.sendMany(4, 'orders'), 4)
})

await test('while a ledger grants nothing, because it may have forgotten something, a process spends its part', async (t) => {
  const world = await ManualBudget.opened({ windows: WINDOW, alone: 0.3, instances: 3 })
  await world.pass(11_250)
  t.equal(world.budget.counts.alone, 0)
  world.quietMs = 5250
  world.loseLedger()
  await world.pass(3500)
  const sent = await world.sendMany(30, 'orders')
  t.equal(world.budget.counts.alone, 10, 'its part')
  t.ok(sent > 10 && sent <= 14, `${sent} orders, those with the tokens at hand among them`)
  await world.pass(5250)
  const shared = await world.sendMany(80, 'orders')
  t.ok(shared >= 56, `${shared} of the shared part when the ledger grants again`)
  t.equal(world.budget.counts.alone, 10)
})

for (const { lateMs, spent, given } of [
  { lateMs: 500, spent: 0, given: 4 },
  { lateMs: 500, spent: 3, given: 1 },
  { lateMs: 14_000, spent: 0, given: 4 },
  { lateMs: 15_500, spent: 0, given: 0 },
]) {
  await test(`a ledger that is quiet gives ${given} tokens back ${lateMs} ms after they lapsed`, async (t) => {
    const world = await ManualBudget.opened({ windows: [{ calls: 300, windowMs: 60_000 }] })
    world.isAway = true
    t.equal(await world.sendMany(spent, 'orders'), spent)
    await world.pass(15_000 + lateMs - 500)
    t.equal(await world.sendMany(10, 'orders'), 0, 'they cannot be spent any more')
    world.quietMs = 15_250
    world.loseLedger()
    world.isAway = false
    await world.pass(600)
    t.equal(await world.sendMany(10, 'reads'), 0, 'not for reads')
    t.equal(await world.sendMany(10, 'orders'), given)
  })
}

await test('a ledger that has lost its memory hears from a process what it has spent', async (t) => {
  const world = await ManualBudget.opened({ windows: WINDOW })
  t.equal(await world.sendMany(120, 'orders'), 100)
  world.loseLedger()
  const before = world.reports.length
  await world.pass(7000)
  t.ok(world.reports.length > before, 'the new ledger has got a report')
  t.equal(await world.sendMany(120, 'orders'), 0, 'and grants nothing within the same window')
  await world.pass(5000)
  const later = await world.sendMany(120, 'orders')
  t.ok(later > 90, `${later} orders in the next window`)
})

await test('a ledger whose replies are lost does not give others what a later one gives back', async (t) => {
  const book = new LedgerModel()
  const windows = [{ calls: 300, windowMs: 60_000 }]
  const [one, two] = [new ManualBudget({ windows }, book), new ManualBudget({ windows }, book)]
  await Promise.all([one.budget.opened(), two.budget.opened()])
  await two.pass(12_000)
  let sent = 0
  for (let each = 0; each < 60; each++) {
    if (await one.send('reads')) sent++
    await one.pass(200)
  }
  one.replies = Promise.reject(new Error('the reply is lost'))
  one.replies.catch(() => undefined)
  for (const each of [two, one]) await each.pass(20_000)
  sent += await two.sendMany(300, 'orders')
  t.equal(await one.sendMany(40, 'orders'), 0, 'its tokens have lapsed')
  one.replies = Promise.resolve()
  one.quietMs = 15_250
  one.loseLedger()
  await one.pass(500)
  const given = await one.sendMany(40, 'orders')
  t.ok(given > 4, `${given} tokens are given back`)
  t.ok(sent + given <= 300, `${sent + given} calls within a window`)
})

await test('tokens that lapsed longer ago than half of the shortest window are not given back', async (t) => {
  const book = new LedgerModel()
  const windows = [{ calls: 100, windowMs: 1000 }]
  const one = new ManualBudget({ windows }, book)
  const two = new ManualBudget({ windows }, book)
  await one.budget.opened()
  await two.budget.opened()
  one.isAway = true
  await two.pass(8500)
  await one.pass(8500)
  const others = await two.sendMany(120, 'orders')
  one.isAway = false
  one.quietMs = 5250
  one.loseLedger()
  await one.pass(600)
  const given = await one.sendMany(10, 'orders')
  t.ok(others + given <= 100, `${others} and ${given} orders within a second`)
})

await test('without the ledger, one user gets no more than half of what there is beside another', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 3000, windowMs: 60_000 }], alone: 0.1, instances: 1 })
  await world.pass(62_000)
  world.isAway = true
  await world.pass(16_000)
  t.equal(await world.sendMany(400, 'orders', 'one'), 300)
  const seconds = async (count: number, each: number): Promise<readonly [number, number]> => {
    let [one, two] = [0, 0]
    for (let second = 0; second < count; second++) {
      one += await world.sendMany(each, 'orders', 'one')
      two += await world.sendMany(1, 'orders', 'two')
      await world.pass(1000)
    }
    return [one, two]
  }
  t.same(await seconds(62, 1), [0, 0], 'all is spent')
  t.same(await seconds(50, 1), [50, 50])
  const [greedy, modest] = await seconds(240, 20)
  t.comment(`${greedy} and ${modest}`)
  t.equal(modest, 240, 'one who asks once a second gets all')
  t.ok(greedy + modest >= 4 * 200, `${greedy + modest} of 1,200 are used`)
  t.ok(greedy <= 4 * 150, 'half at most')
})

await test('while a new ledger is quiet, a user of few orders may have the tokens at hand, though others were here', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 300, windowMs: 60_000 }], instances: 5 })
  t.ok(await world.send('reads', 'another'))
  world.quietMs = 15_000
  world.loseLedger()
  await world.pass(11_000)
  const atHand = world.budget.leased('orders')
  t.equal(atHand, 4)
  t.equal(await world.sendMany(atHand, 'orders', 'one'), atHand)
})
