import { test } from 'tap'
import type { BudgetClass } from '../../src/config/upstream-budget.ts'
import type { Leaseholder } from '../../src/upstream/budget/leaseholder.ts'
import { Shares } from '../../src/upstream/budget/shares.ts'
import type { BudgetTerms } from '../../src/upstream/budget/terms.ts'

const ceilings = (orders: number) => ({ orders, otps: orders * 0.8, reads: orders * 0.5 })
const MINUTE = { windowMs: 60_000, ceilings: ceilings(100) }
const TEN_MINUTES = { windowMs: 600_000, ceilings: ceilings(400) }

/** The shares of one of four processes, and the tokens that it has. */
function sharesOf({
  windows = [MINUTE, TEN_MINUTES],
  used = [20, 20],
  free = { orders: 4, otps: 0, reads: 10 },
  ...more
}: {
  windows?: BudgetTerms['windows']
  used?: number[]
  free?: Record<BudgetClass, number>
  wereInUse?: boolean
  isCutOff?: boolean
} = {}) {
  let now = 1000
  const tokens = {
    wereInUse: false,
    isCutOff: false,
    recentlyUsed: used,
    free: (each: BudgetClass) => free[each],
    ...more,
  }
  const clock = { now: () => now, timeOfDay: () => now, after: () => () => undefined }
  const terms = { windows, instances: 4 } as unknown as BudgetTerms
  const shares = new Shares(clock, terms, tokens as unknown as Leaseholder)
  return {
    shares,
    tokens,
    pass: (ms: number) => void (now += ms),
    ask: (...subjects: string[]) => subjects.forEach((each) => shares.noteAsked('reads', each)),
    take: (...subjects: string[]) => {
      for (const each of subjects) {
        free.reads--
        shares.noteTaken('reads', each)
      }
    },
    left: (subject = 'one') => [shares.equalLeft('reads', subject), shares.moreLeft('reads')],
  }
}

const many = (count: number, name = 'subject') => Array.from({ length: count }, (_, at) => `${name} ${at}`)

await test('a subject that is alone has all, and a call without a name is nobody’s', (t) => {
  const { shares, ask, left } = sharesOf()
  ask('', 'one')
  t.equal(left()[0], Infinity)
  t.equal(shares.portion('reads', 'one'), 'equal')
  ask('two')
  t.same(left(), [8, 8], 'a quarter of the 33.8 tokens that this process can count on, before calls were seen')
  t.equal(shares.equalLeft('orders', 'one'), 15, 'of 60, and of those that are ready none counts twice')
  t.equal(shares.portion('orders', 'one'), 'equal')
  t.end()
})

await test('a subject counts as present for the shortest window, but for ten seconds at least and a minute at most', (t) => {
  for (const [windowMs, presentMs] of [
    [1000, 10_000],
    [30_000, 30_000],
    [600_000, 60_000],
  ] as const) {
    const { ask, pass, left } = sharesOf({ windows: [{ ...MINUTE, windowMs }], used: [20] })
    ask('two')
    pass(presentMs)
    t.not(left()[0], Infinity, `${windowMs}`)
    pass(1)
    t.equal(left()[0], Infinity, `${windowMs}`)
  }
  t.end()
})

await test('a process that joined busy ones assumes others for a while, and does not share their reserve', (t) => {
  const { pass, left, tokens } = sharesOf({ wereInUse: true })
  t.same(left()[0], 7, 'of 30.3 tokens')
  pass(59_999)
  t.same(left()[0], 7)
  pass(1)
  t.equal(left()[0], Infinity)
  tokens.wereInUse = false
  const known = sharesOf({ wereInUse: true })
  known.pass(60_000)
  known.ask('one', 'two')
  t.same(known.left()[0], 8, 'it has seen a whole window by then')
  t.end()
})

await test('half of the tokens may be used beyond equal parts once calls have been seen for a quarter of the window', (t) => {
  for (const [seenMs, most] of [
    [0, 8],
    [7500, 12],
    [15_000, 16],
    [30_000, 16],
  ] as const) {
    const { ask, take, pass, left } = sharesOf()
    ask('one', 'two')
    take('two')
    pass(seenMs)
    t.equal(left()[0], most, `${seenMs}`)
  }
  t.end()
})

await test('the window that has least decides, and each keeps a reserve: a tenth, and a fifth of a longer one', (t) => {
  for (const [used, equal, more] of [
    [[20, 390], 2, 0],
    [[44, 20], 9, 5],
    [[0, 150], 10, 14],
  ] as const) {
    const { ask, left } = sharesOf({ used: [...used], free: { orders: 4, otps: 0, reads: used[1] === 390 ? 10 : 30 } })
    ask('one', 'two')
    t.same(left(), [equal, more], used.join(' '))
  }
  t.end()
})

await test('a process without the ledger keeps a tenth of what it has at hand, one at least, and half of it for all', (t) => {
  for (const [reads, more] of [
    [10, 5],
    [3, 1],
    [1, 0],
  ] as const) {
    const { ask, left } = sharesOf({ isCutOff: true, free: { orders: 4, otps: 0, reads } })
    ask('one', 'two')
    t.equal(left()[1], more, `${reads}`)
  }
  const own = { windows: [MINUTE], isCutOff: true, free: { orders: 4, otps: 0, reads: 26 } }
  const { ask, take, pass, left } = sharesOf(own)
  ask(...many(20))
  take(...many(20))
  pass(59_000)
  ask(...many(20))
  t.equal(left()[1], 2, 'of six, beside twenty that were used, and what others will ask for')
  t.end()
})

await test('a portion is that of the window in which it is worst', (t) => {
  const { shares, ask, take } = sharesOf()
  ask(...many(9), 'one')
  take(...many(7, 'one').map(() => 'one'))
  t.equal(shares.portion('reads', 'one'), 'more', 'an equal part of ten minutes, and more of this one')
  take('one')
  t.equal(shares.portion('reads', 'one'), 'none')
  const longer = sharesOf({ used: [20, 390] })
  longer.ask(...many(9), 'one')
  longer.take('one', 'one', 'one')
  t.equal(longer.shares.portion('reads', 'one'), 'none', 'ten minutes are used up')
  t.end()
})
