import * as fc from 'fast-check'
import { test } from 'tap'
import { BUDGET_CLASSES, type ByClass } from '../../src/config/upstream-budget.ts'
import type { Ledger, LedgerReport, LedgerTerms, Spends } from '../../src/store/ledger/ledger.ts'
import { MemoryLedger } from '../../src/store/ledger/memory-ledger.ts'
import { LedgerModel } from '../support/budget/ledger-model.ts'

const TERMS: LedgerTerms = {
  windows: [
    { windowMs: 10_000, ceilings: { orders: 40, otps: 32, reads: 20 } },
    { windowMs: 60_000, ceilings: { orders: 90, otps: 72, reads: 45 } },
  ],
  leaseMs: 7000,
  marginMs: 1250,
  bucketMs: 500,
}
const KEEPER = { run: '', quietMs: 0 }
const NONE: ByClass = { orders: 0, otps: 0, reads: 0 }

/** The ledger of a process that keeps it for itself, with the clock of the test. */
function ownLedger(now: () => number): Ledger {
  const ledger = new MemoryLedger()
  return { settle: async (report) => ledger.settle(TERMS, report, now()) }
}

const counts = (max: number) => fc.record({ orders: fc.nat({ max }), otps: fc.nat({ max }), reads: fc.nat({ max }) })
/** What happens between two reports: tokens spent early and late, the time that passes after each, and what is wanted then. */
const step = fc.record({
  early: counts(5),
  late: counts(5),
  passedMs: fc.tuple(fc.nat({ max: 3400 }), fc.nat({ max: 3400 })),
  returned: counts(2),
  wanted: counts(12),
})

const sum = ({ orders, otps, reads }: ByClass): number => orders + otps + reads
const eachClass = (of: (each: keyof ByClass) => number): ByClass => ({
  orders: of('orders'),
  otps: of('otps'),
  reads: of('reads'),
})

/** What the only holder of a ledger reports after the first time. */
const reportOf = (
  sequence: number,
  ledger: { id: string; at: number; agoMs: number },
  more: Partial<LedgerReport>,
) => ({
  holder: 'one',
  sequence,
  ledger: ledger.id,
  heardAt: ledger.at,
  sinceMs: ledger.agoMs,
  spent: 0,
  spends: [] as Spends[],
  isWhole: sequence === 1,
  held: NONE,
  lapsed: 0,
  wanted: NONE,
  ...more,
})

await test('the ledger in memory grants its only holder what the model of the script of Redis does, and says truly when to ask again', async (t) => {
  const settles = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 80 }), async (steps) => {
    let now = 1000
    const ledger = ownLedger(() => now)
    const model = new LedgerModel()
    let held = NONE
    let spent = 0
    let heard = { id: '', at: 0, agoMs: 0 }
    /** The last spends that were told: those told again count once. */
    let told: readonly [at: number, count: number] | undefined
    for (const [index, { early, late, passedMs, returned, wanted }] of steps.entries()) {
      const since = now
      const spend = (most: ByClass): readonly [at: number, count: number] => {
        const taken = eachClass((each) => Math.min(most[each], held[each]))
        held = eachClass((each) => held[each] - taken[each])
        spent += sum(taken)
        return [now, sum(taken)]
      }
      now += passedMs[0]
      const first = spend(early)
      now += passedMs[1]
      const last = spend(late)
      held = eachClass((each) => Math.max(0, held[each] - returned[each]))
      const spends = [...(told === undefined ? [] : [told]), first, last].map(
        ([at, count]) => [now - at, count] as const,
      )
      told = last
      heard.agoMs = now - since
      const report = reportOf(index + 1, heard, { spent, spends, held, wanted })
      const expected = model.settle(TERMS, report, { timeOfDay: now, ...KEEPER })
      const reply = await ledger.settle(report)
      if (reply.is !== 'settled' || expected.is !== 'settled') throw new Error(`${reply.is}, not ${expected.is}`)
      const { granted, used, waitMs } = expected
      t.same([reply.granted, reply.used, reply.at], [granted, used, now])
      for (const each of BUDGET_CLASSES) {
        // The script spaces the reports of many processes, too.
        if (reply.waitMs[each] > waitMs[each] || reply.waitMs[each] > 0 !== waitMs[each] > 0) {
          throw new Error(`${each} wait for ${reply.waitMs[each]} ms, not ${waitMs[each]}`)
        }
      }
      held = eachClass((each) => held[each] + granted[each])
      heard = { id: expected.ledger, at: expected.at, agoMs: 0 }
    }
    return t.passing()
  })
  await fc.assert(settles, { numRuns: 60 })
})

await test('the ledger in memory says when a token becomes free, not a millisecond later', async (t) => {
  let now = 0
  const ledger = ownLedger(() => now)
  const wanted = { ...NONE, orders: 50 }
  const first = reportOf(1, { id: '', at: 0, agoMs: 0 }, { wanted })
  t.match(await ledger.settle(first), { granted: { orders: 40 }, used: [40, 40] })
  now = 1200
  const spends: Spends[] = [
    [1000, 30],
    [0, 10],
  ]
  const refused = await ledger.settle({ ...first, sequence: 2, spent: 40, spends, isWhole: false })
  // 30 were spent by 500, and count for a window and the margin from there.
  t.match(refused, { granted: NONE, waitMs: { orders: 500 + 10_000 + 1250 - now } })
  now = 500 + 10_000 + 1250 - 1
  const next = { ...first, spent: 40, spends: [], isWhole: false }
  t.match(await ledger.settle({ ...next, sequence: 3 }), { granted: NONE, waitMs: { orders: 1 } })
  now++
  t.match(await ledger.settle({ ...next, sequence: 4 }), { granted: { orders: 30 }, used: [40, 70] })
})

await test('tokens that lapse while the process hangs count once, until a window after their lease ended', async (t) => {
  let now = 0
  const ledger = ownLedger(() => now)
  const first = reportOf(1, { id: '', at: 0, agoMs: 0 }, { wanted: { ...NONE, orders: 10 } })
  t.match(await ledger.settle(first), { granted: { orders: 10 } })
  now = 12_000
  // The holder reports the tokens of an ended lease as spent at its end.
  const lapsed: Spends[] = [[5000, 10]]
  const late = { ...first, sequence: 2, isWhole: false, spent: 10, spends: lapsed, lapsed: 10, wanted: NONE }
  t.match(await ledger.settle(late), { used: [10, 10] })
  now = 7000 + 10_000 + 1250
  t.match(await ledger.settle({ ...late, sequence: 3, spends: [] }), { used: [0, 10] })
})
