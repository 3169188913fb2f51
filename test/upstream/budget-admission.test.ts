import { test } from 'tap'
import { outcome, ScriptedBudget, turns } from '../support/budget/scripted-budget.ts'

await test('opened() resolves once there are tokens for orders, when its signal is aborted, and after three leases', async (t) => {
  for (const how of ['granted', 'aborted', 'late', 'closed'] as const) {
    const world = new ScriptedBudget()
    const own = new AbortController()
    let isOpen = false
    void world.budget.opened(own.signal).then(() => (isOpen = true))
    t.same(
      [...world.delays],
      [45_000, 1000, 900],
      'three leases, the line of the log, and the patience with the ledger',
    )
    t.equal(world.reports, 1)
    if (how === 'granted') await world.reply({ granted: { orders: 1 } })
    else if (how === 'aborted') own.abort()
    else if (how === 'closed') {
      void world.budget.close()
      await world.reply({})
    } else {
      world.now += 45_000
      await world.run()
    }
    await turns()
    t.ok(isOpen, how)
    t.notOk(world.delays.includes(45_000), 'nothing gives up any more')
  }
  const world = new ScriptedBudget()
  await world.budget.opened(AbortSignal.abort())
  t.equal(world.reports, 0)
})

await test('opened() asks again when the ledger may have tokens for orders, and at once no more often than every 10 ms', async (t) => {
  const world = new ScriptedBudget()
  let isOpen = false
  void world.budget.opened().then(() => (isOpen = true))
  await world.reply({ waitMs: { orders: 700 } })
  t.ok(world.delays.includes(700))
  world.now += 700
  await world.run()
  await world.reply()
  t.ok(world.delays.includes(500), 'it is away')
  world.now += 500
  await world.run()
  await world.reply({})
  t.ok(world.delays.includes(10))
  t.notOk(isOpen)
  world.now += 10
  await world.run()
  await world.reply({ granted: { orders: 1 } })
  t.ok(isOpen)
})

await test('a call takes a token at hand, and without one it waits for the reply to a report, or is refused', async (t) => {
  const world = await ScriptedBudget.with({ granted: { orders: 4, reads: 1 } })
  const { budget } = world
  t.equal(budget.leased('reads'), 1)
  t.equal(outcome(budget.admit('reads', 'a')), 'granted')
  t.equal(world.reports, 0)
  const waiting = [budget.admit('reads', 'a'), budget.admit('reads', 'b')]
  t.same(waiting.map(outcome), ['waiting', 'waiting'])
  t.equal(world.reports, 1)
  await world.reply({ granted: { reads: 1 }, waitMs: { reads: 1500.5, otps: 300 } })
  const [first, second] = await Promise.all(waiting.map((each) => Promise.resolve(each)))
  t.match(first, { is: 'granted' })
  t.same(second, { is: 'refused', limited: 'all', retryAfterMs: 1501 })
  t.same(budget.admit('otps', 'a'), { is: 'refused', limited: 'all', retryAfterMs: 1000 }, 'a second at least')
  t.same(budget.admit('reads', 'c'), { is: 'refused', limited: 'all', retryAfterMs: 1501 }, 'nobody waits for nothing')
  t.same(budget.counts.granted, { orders: 0, otps: 0, reads: 2 })
  t.same(budget.counts.refused, { orders: 0, otps: 1, reads: 2 })
  t.same([budget.counts.limited, budget.counts.alone], [{ orders: 0, otps: 0, reads: 0 }, 0])
})

await test('a call whose ledger is away is refused, unless a part is set aside for that', async (t) => {
  const world = await ScriptedBudget.with({ granted: { orders: 1 } }, { alone: 0.03 })
  const { budget } = world
  t.equal(budget.isAlone, false)
  // A process that has just started leaves its part to the one before.
  world.now += 61_250
  const waiting = budget.admit('reads', 'a')
  await world.reply()
  t.equal(budget.isAlone, true)
  t.match(await waiting, { is: 'granted' })
  const calls = ['reads', 'orders', 'orders', 'orders'] as const
  t.same(
    calls.map((each) => outcome(budget.admit(each, 'a'))),
    ['refused', 'granted', 'granted', 'refused'],
  )
  t.equal(budget.counts.alone, 3)
  t.equal(world.reports, 0, 'it is not asked before its time')
  t.equal(new ScriptedBudget().budget.isAlone, false, 'nobody has asked it yet')
})

await test('an order that leaves half of the tokens for orders has more asked for, where the ledger may have them', async (t) => {
  for (const [granted, take, waitMs, reports] of [
    [4, 1, 0, 0],
    [4, 2, 0, 1],
    [3, 1, 0, 1],
    [3, 1, 3000, 0],
  ] as const) {
    const world = await ScriptedBudget.with({ granted: { orders: granted, reads: 1 }, waitMs: { orders: waitMs } })
    for (let each = 0; each < take; each++) t.equal(outcome(world.budget.admit('orders', 'a')), 'granted')
    t.equal(world.reports, reports, `${granted} less ${take}`)
  }
  const short = await ScriptedBudget.with({ granted: { orders: 2, reads: 1 } })
  t.equal(outcome(short.budget.admit('reads', 'a')), 'granted')
  t.equal(short.reports, 0, 'a read is no order')
  const away = await ScriptedBudget.with({ granted: { orders: 3 } })
  void away.budget.admit('reads', 'a')
  await away.reply()
  t.equal(outcome(away.budget.admit('orders', 'a')), 'granted')
  t.equal(away.reports, 0)
})

await test('a call that comes while a report is under way gets a token of its reply, or of the next one', async (t) => {
  const world = await ScriptedBudget.with({ granted: { orders: 4 } })
  const first = world.budget.admit('reads', 'a')
  const second = world.budget.admit('reads', 'a')
  t.equal(world.reports, 1)
  await world.reply({ granted: { reads: 1 } })
  t.match(await first, { is: 'granted' })
  t.equal(world.reports, 1)
  await world.reply({ granted: { reads: 1 } })
  t.match(await second, { is: 'granted' })
})

await test('a user who has had a share waits for tokens that others may have left, once the last reply is old enough', async (t) => {
  for (const [laterMs, expected] of [
    [999, 'refused'],
    [1000, 'waiting'],
  ] as const) {
    const world = await ScriptedBudget.with({ granted: { orders: 4, reads: 10 }, used: [90] })
    const { budget } = world
    void budget.admit('reads', 'other')
    for (let each = 0; each < 9; each++) void budget.admit('reads', 'greedy')
    t.ok(budget.leased('reads') > 0, 'there are some for others')
    world.now += laterMs
    t.equal(outcome(budget.admit('reads', 'greedy')), expected, `${laterMs} ms`)
    t.equal(outcome(budget.admit('reads', 'other')), expected === 'waiting' ? 'waiting' : 'granted')
  }
})

await test('a class that is held back refuses calls, and lets the probe go if it gets a token', async (t) => {
  const world = await ScriptedBudget.with({ granted: { orders: 4 } })
  const { budget, refusals } = world
  Object.assign(refusals, { isCalm: false, held: { limited: 'user', leftMs: 2500 }, canProbe: true })
  const admit = () => budget.admit('reads', 'a', () => 'a')
  t.same(admit(), { is: 'refused', limited: 'user', retryAfterMs: 2500 })
  t.same(budget.counts.limited, { orders: 0, otps: 0, reads: 1 })
  refusals.held = { limited: 'all', leftMs: 2500 }
  refusals.canProbe = false
  t.same(admit(), { is: 'refused', limited: 'all', retryAfterMs: 2500 })
  refusals.canProbe = true
  refusals.isTaken = false
  t.match(await admit(), { is: 'refused', retryAfterMs: 2500 }, 'another call is the probe')
  refusals.isTaken = true
  for (const granted of [0, 1]) {
    const probe = admit()
    await turns()
    await world.reply({ granted: { reads: granted }, waitMs: { reads: granted === 0 ? 1 : 0 } })
    t.match(await probe, { is: granted === 0 ? 'refused' : 'granted' })
    t.same(refusals.notes.splice(0), granted === 0 ? ['reads', { is: 'unanswered', probe: 'the probe' }] : [])
    world.now += 1
  }
  t.equal(budget.isHeldBack('otps'), true)
  t.equal(budget.isHeldBack('reads'), false)
  t.equal(budget.usersHeldBack, refusals.usersHeldBack)
})
