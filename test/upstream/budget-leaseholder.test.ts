import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { StoreUnavailable } from '../../src/store/store.ts'
import type { LedgerReply, LedgerReport } from '../../src/store/ledger/ledger.ts'
import { Leaseholder } from '../../src/upstream/budget/leaseholder.ts'
import { budgetTerms } from '../../src/upstream/budget/terms.ts'

const NONE = { orders: 0, otps: 0, reads: 0 }
const TERMS = budgetTerms({
  name: 'default',
  windows: [{ calls: 100, windowMs: 20_000 }],
  shares: { orders: 1, otps: 0.8, reads: 0.5 },
  alone: 0.1,
  instances: 2,
})
const WANTED = { most: { orders: 9, otps: 9, reads: 9 }, target: { orders: 3, otps: 2, reads: 1 } }
/** A start after which the part set aside may be used. */
const LONG_MS = 1_000_000

const settled = (more: Partial<Extract<LedgerReply, { is: 'settled' }>> = {}): LedgerReply => ({
  is: 'settled',
  ledger: 'a ledger',
  at: 500,
  granted: NONE,
  waitMs: NONE,
  quietMs: 0,
  used: [7],
  ...more,
})

/** The tokens of a process whose ledger says what a test has it say. */
function holder(...replies: (LedgerReply | Error)[]) {
  const times = { now: 1000, timeOfDay: 5000 }
  const timers = new Map<() => void, number>()
  const clock = {
    now: () => times.now,
    timeOfDay: () => times.timeOfDay,
    after: (ms: number, call: () => void) => (timers.set(call, ms), () => timers.delete(call)),
  }
  const reports: LedgerReport[] = []
  const ledger = {
    settle: async (report: LedgerReport) => {
      reports.push(report)
      await setImmediate()
      const reply = replies.shift() ?? settled()
      if (reply instanceof Error) throw reply
      return reply
    },
  }
  const tokens = new Leaseholder(ledger, clock, TERMS)
  const pass = (ms: number): void => {
    times.now += ms
    times.timeOfDay += ms
  }
  return { tokens, reports, pass, replies, timers }
}

await test('a report says what was spent and what is wanted, and brings tokens', async (t) => {
  const { tokens, reports, pass, replies } = holder(settled({ granted: { orders: 3, otps: 0, reads: 2 } }))
  t.same([tokens.hasReplied, tokens.used, tokens.recentlyUsed, tokens.wereInUse], [undefined, [0], undefined, false])
  t.same(await tokens.settle(WANTED), NONE)
  t.match(reports[0], {
    sequence: 1,
    ledger: '',
    heardAt: 0,
    sinceMs: 1000,
    spent: 0,
    spends: [],
    isWhole: true,
    held: NONE,
    lapsed: 0,
    wanted: { orders: 3, otps: 2, reads: 1 },
  })
  t.same([tokens.hasReplied, tokens.used, tokens.recentlyUsed, tokens.repliedAt], [true, [7], [7], 1000])
  t.same([tokens.free('orders'), tokens.free('otps'), tokens.free('reads')], [3, 0, 2])
  const [one, other] = [tokens.take('orders'), tokens.take('orders')]
  one?.spend()
  pass(100)
  replies.push(settled({ ledger: 'a ledger', at: 600, waitMs: { orders: 0, otps: 5, reads: 9 } }))
  t.same(await tokens.settle(WANTED), { orders: 0, otps: 5, reads: 9 })
  t.match(reports[1], {
    sequence: 2,
    holder: reports[0]?.holder,
    ledger: 'a ledger',
    heardAt: 500,
    sinceMs: 100,
    spent: 1,
    spends: [[100, 1]],
    isWhole: false,
    held: { orders: 2, otps: 0, reads: 2 },
    wanted: { orders: 2, otps: 2, reads: 0 },
  })
  other?.spend()
  pass(10)
  await tokens.settle({ most: NONE, target: NONE })
  t.match(reports[2], { heardAt: 600, sinceMs: 10, spent: 2, spends: [[10, 1]], held: NONE })
  t.equal(tokens.free('reads'), 0)
})

await test('the tokens of a late reply last for a lease from when the report was sent', async (t) => {
  const { tokens, pass } = holder(settled({ granted: { ...NONE, orders: 2 } }))
  const settling = tokens.settle(WANTED)
  pass(TERMS.leaseMs - 1)
  await settling
  t.equal(tokens.free('orders'), 2)
  pass(1)
  t.equal(tokens.free('orders'), 0, 'the ledger may have given them to others')
})

await test('a ledger that has forgotten something gets all that was spent', async (t) => {
  const { tokens, reports, replies } = holder(settled({ granted: { ...NONE, orders: 2 } }))
  await tokens.settle(WANTED)
  tokens.take('orders')?.spend()
  await tokens.settle(WANTED)
  tokens.take('orders')?.spend()
  replies.push({ is: 'unknown' }, settled({ ledger: 'another' }))
  t.ok(await tokens.settle(WANTED))
  t.same(
    reports.slice(2).map(({ isWhole, spent, spends, sequence }) => ({ isWhole, spent, spends, sequence })),
    [
      { isWhole: false, spent: 2, spends: [[0, 2]], sequence: 3 },
      { isWhole: true, spent: 2, spends: [[0, 2]], sequence: 4 },
    ],
  )
  await tokens.settle(WANTED)
  t.equal(reports.at(-1)?.ledger, 'another')
})

await test('while the ledger cannot be reached a process has the part set aside, and asks again half a second later', async (t) => {
  const { tokens, pass, replies } = holder()
  pass(LONG_MS)
  t.equal(tokens.free('orders'), 0)
  for (const reply of [new StoreUnavailable('away'), { is: 'outdated' } as const]) {
    replies.push(reply)
    t.equal(await tokens.settle(WANTED), undefined)
    t.equal(tokens.hasReplied, false)
    t.same([tokens.isAway, tokens.isCutOff, tokens.free('orders')], [true, true, 5])
    pass(499)
    t.equal(tokens.isAway, true)
    pass(1)
    t.same([tokens.isAway, tokens.isCutOff, tokens.free('orders')], [false, false, 0])
  }
  replies.push(new StoreUnavailable('away'))
  await tokens.settle(WANTED)
  t.equal(tokens.take('orders')?.isAlone, true)
  t.equal(tokens.free('orders'), 4)
  replies.push(settled({ granted: { ...NONE, orders: 1 } }))
  await tokens.settle(WANTED)
  t.same([tokens.isAway, tokens.isCutOff, tokens.free('orders')], [false, false, 1])
  t.equal(tokens.take('orders')?.isAlone, undefined)
  t.equal(tokens.take('orders'), undefined)
})

await test('while a ledger is quiet a process has the part set aside, too', async (t) => {
  const { tokens, pass, replies } = holder()
  pass(LONG_MS)
  replies.push(settled({ quietMs: 3000 }))
  await tokens.settle(WANTED)
  t.same([tokens.isAway, tokens.isCutOff, tokens.free('orders')], [false, true, 5])
  pass(2999)
  t.equal(tokens.isCutOff, true)
  pass(1)
  t.equal(tokens.isCutOff, false)
})

await test('what counted at the last reply is known for a lease', async (t) => {
  const { tokens, pass } = holder()
  await tokens.settle(WANTED)
  pass(TERMS.leaseMs - 1)
  t.same(tokens.recentlyUsed, [7])
  pass(1)
  t.equal(tokens.recentlyUsed, undefined)
  t.same(tokens.used, [7])
})

await test('a process has joined others if more was in use at first than is always ready for orders', async (t) => {
  const ready = TERMS.readyOrders * TERMS.instances
  for (const [used, wereInUse] of [
    [ready, false],
    [ready + 1, true],
  ] as const) {
    const { tokens, replies } = holder(settled({ used: [used] }))
    await tokens.settle(WANTED)
    t.equal(tokens.wereInUse, wereInUse, `${used}`)
    replies.push(settled({ used: [wereInUse ? 0 : 99] }))
    await tokens.settle(WANTED)
    t.equal(tokens.wereInUse, wereInUse, 'the first reply counts')
  }
})

await test('a process that leaves gives back all that is not taken before it is gone', async (t) => {
  const { tokens, reports } = holder(settled({ granted: { orders: 2, otps: 1, reads: 1 } }))
  await tokens.settle(WANTED)
  tokens.take('orders')
  let hasLeft = false
  const leaving = tokens.leave().then(() => (hasLeft = true))
  await Promise.resolve()
  t.equal(hasLeft, false)
  await leaving
  t.match(reports.at(-1), { held: { orders: 1, otps: 0, reads: 0 }, wanted: NONE })
})

await test('a ledger that is silent for nine tenths of a second counts as away until it replies, and who waits is told', async (t) => {
  const { tokens, timers } = holder()
  let silences = 0
  for (const onSilence of [() => silences++, undefined]) {
    const settling = tokens.settle(WANTED, onSilence)
    t.strictSame([...timers.values()], [900])
    t.equal(tokens.isAway, false)
    for (const [call] of timers) call()
    t.strictSame([tokens.isAway, tokens.isCutOff, tokens.hasReplied], [true, true, false])
    await settling
    t.strictSame([tokens.isAway, tokens.hasReplied], [false, true])
    t.equal(timers.size, 0, 'a reply ends the wait')
  }
  t.equal(silences, 1)
})
