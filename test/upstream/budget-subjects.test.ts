import { test } from 'tap'
import { Demand } from '../../src/upstream/budget/demand.ts'
import type { Shares } from '../../src/upstream/budget/shares.ts'
import { PresentSubjects, SubjectCalls, type Stock } from '../../src/upstream/budget/subject-calls.ts'
import { budgetTerms } from '../../src/upstream/budget/terms.ts'
import { WaitingLine } from '../../src/upstream/budget/waiting-line.ts'

const WINDOW_MS = 60_000
const STOCK: Stock = { tokens: 100, spare: 50, part: 1, subjects: 4, most: 100, greedy: 60 }

/** A clock that a test moves. */
function clockOf() {
  const times = { now: 0 }
  const clock = { now: () => times.now, timeOfDay: () => times.now, after: () => () => undefined }
  return { clock, pass: (ms: number) => (times.now += ms) }
}

function callsOf() {
  const { clock, pass } = clockOf()
  const calls = new SubjectCalls(clock, WINDOW_MS)
  const take = (subject: string, count: number): void => {
    for (let each = 0; each < count; each++) calls.noteTaken(subject)
  }
  return { calls, pass, take }
}

await test('an equal part is that of the tokens, with room for chance, two at least', (t) => {
  const { calls, take } = callsOf()
  // 25 and twice the square root of it.
  t.equal(calls.equalLeft('a', STOCK), 35)
  take('a', 5)
  t.equal(calls.equalLeft('a', STOCK), 30)
  t.equal(calls.equalLeft('b', STOCK), 35)
  t.equal(calls.equalLeft('b', { ...STOCK, most: 20.5 }), 20)
  t.equal(calls.equalLeft('b', { ...STOCK, tokens: 0 }), 2)
  t.equal(calls.equalLeft('b', { ...STOCK, subjects: 0 }), 100)
  t.end()
})

await test('calls are forgotten when their window is over, each user with its own', (t) => {
  const { calls, pass, take } = callsOf()
  t.equal(calls.seenMs, 0)
  take('a', 2)
  pass(30_000)
  take('a', 1)
  take('b', 3)
  t.equal(calls.count, 6)
  t.equal(calls.seenMs, 30_000)
  pass(29_999)
  t.equal(calls.count, 6)
  pass(1)
  t.equal(calls.count, 4)
  t.equal(calls.equalLeft('a', STOCK), 34)
  t.equal(calls.seenMs, 30_000)
  pass(30_000)
  t.equal(calls.count, 0)
  t.equal(calls.equalLeft('b', STOCK), 35)
  t.end()
})

await test('whoever is asked about first, calls whose window is over count no more', (t) => {
  for (const ask of ['equalLeft', 'moreLeft', 'portion'] as const) {
    const { calls, take, pass } = callsOf()
    take('a', 50)
    pass(WINDOW_MS)
    if (ask === 'equalLeft') t.equal(calls.equalLeft('a', STOCK), 35)
    if (ask === 'moreLeft') t.equal(calls.moreLeft(STOCK), 50)
    if (ask === 'portion') t.equal(calls.portion('a', STOCK), 'equal')
  }
  const { calls, take } = callsOf()
  take('a', 35)
  t.equal(
    calls.moreLeft({ ...STOCK, spare: 1000 }),
    0,
    'who has just an equal part is one of the others, who will ask for more',
  )
  t.equal(calls.portion('b', { ...STOCK, tokens: 0, spare: 1, greedy: 36 }), 'equal')
  t.end()
})

await test('a call is within an equal part, or beyond it and allowed, or one too many', (t) => {
  const { calls, take, pass } = callsOf()
  take('a', 34)
  t.equal(calls.portion('a', STOCK), 'equal')
  take('a', 1)
  pass(WINDOW_MS - 1)
  t.equal(calls.portion('a', STOCK), 'more')
  t.equal(calls.portion('a', { ...STOCK, spare: 0.9 }), 'none')
  t.equal(calls.portion('a', { ...STOCK, greedy: 35 }), 'none')
  t.equal(calls.portion('a', { ...STOCK, greedy: 35.5 }), 'none', 'not a whole call')
  t.equal(calls.portion('a', { ...STOCK, greedy: 36 }), 'more')
  t.equal(calls.portion('b', { ...STOCK, spare: 0 }), 'equal')
  t.end()
})

await test('what others will probably ask for until the window is over is left to them', (t) => {
  const { calls, take, pass } = callsOf()
  take('greedy', 40)
  take('modest', 9)
  pass(30_000)
  // In as long again the modest one asks for nine more, and by chance for twelve beside.
  t.equal(calls.moreLeft({ ...STOCK, greedy: 1000 }), 29)
  t.equal(calls.moreLeft({ ...STOCK, greedy: 1000, part: 0.5 }), 8)
  t.equal(calls.moreLeft({ ...STOCK, greedy: 1000, spare: 20 }), 0)
  t.equal(calls.moreLeft({ ...STOCK, greedy: 45 }), 5)
  t.equal(calls.moreLeft({ ...STOCK, greedy: 60, spare: 1000 }, 'modest'), 11, 'all of its calls count')
  const soon = callsOf()
  soon.take('modest', 1)
  soon.pass(1)
  t.equal(soon.calls.moreLeft({ ...STOCK, spare: 100, greedy: 1000 }), 5, 'a twentieth of the window is seen at least')
  t.end()
})

await test('a user counts as present for a while after its last call', (t) => {
  const { clock, pass } = clockOf()
  const present = new PresentSubjects(clock, 1000)
  t.same([present.count, present.hasOthersThan('a')], [0, false])
  present.note('a')
  t.same([present.count, present.hasOthersThan('a'), present.hasOthersThan('b')], [1, false, true])
  pass(600)
  present.note('b')
  t.equal(present.hasOthersThan('a'), true)
  pass(400)
  t.equal(present.count, 2)
  present.note('a')
  pass(601)
  t.equal(present.count, 1, 'the second has not asked since')
  t.equal(present.hasOthersThan('a'), false)
  for (let each = 0; each < 2000; each++) present.note(`user ${each}`)
  t.equal(present.count, 1024)
  t.equal(present.hasOthersThan('user 1999'), true)
  t.end()
})

const TERMS = budgetTerms({
  name: 'default',
  windows: [{ calls: 300, windowMs: 60_000 }],
  shares: { orders: 1, otps: 0.8, reads: 0.5 },
  alone: 0,
  instances: 1,
})

function demandOf({ equalLeft = 9, moreLeft = 5 } = {}) {
  const { clock, pass } = clockOf()
  const demand = new Demand(clock, TERMS)
  const lines = { orders: new WaitingLine(clock), otps: new WaitingLine(clock), reads: new WaitingLine(clock) }
  const shares = { equalLeft: () => equalLeft, moreLeft: () => moreLeft } as unknown as Shares
  return { demand, pass, lines, wanted: () => demand.wanted(lines, shares) }
}

await test('tokens are asked for the calls that wait and that are expected, and a few for orders', (t) => {
  const { demand, pass, lines, wanted } = demandOf()
  t.same(wanted(), { most: { orders: 4, otps: 0, reads: 0 }, target: { orders: 4, otps: 0, reads: 0 } })
  t.equal(demand.partOtherThan('reads'), 1)
  for (let each = 0; each < 10; each++) demand.note('reads', 'equal')
  for (let each = 0; each < 4; each++) demand.note('otps', 'more')
  pass(599)
  t.equal(wanted().most.reads, 0, 'a rate over a moment says nothing')
  pass(5401)
  // A rise within the time in advance is believed almost at once.
  t.same(wanted(), { most: { orders: 4, otps: 4, reads: 10 }, target: { orders: 4, otps: 4, reads: 10 } })
  t.equal(demand.partOtherThan('reads'), 0)
  t.equal(demand.partOtherThan('orders'), 1)
  pass(6000)
  t.same(wanted().most, { orders: 4, otps: 2, reads: 4 }, 'a fall is believed later')
  void lines.reads.wait('a')
  void lines.reads.wait('a')
  t.equal(wanted().target.reads, 6)
  t.end()
})

await test('for calls beyond equal parts no more tokens are asked than there may be, and one at least', (t) => {
  const none = demandOf({ equalLeft: 1, moreLeft: 0 })
  for (let each = 0; each < 4; each++) void none.lines.reads.wait('a')
  t.equal(none.wanted().target.reads, 2)
  const some = demandOf({ equalLeft: 1, moreLeft: 2 })
  for (let each = 0; each < 4; each++) void some.lines.reads.wait('a')
  t.equal(some.wanted().target.reads, 3)
  const plenty = demandOf({ equalLeft: 1, moreLeft: 9 })
  for (let each = 0; each < 4; each++) void plenty.lines.reads.wait('a')
  t.equal(plenty.wanted().target.reads, 4)
  t.equal(plenty.wanted().target.otps, 0)
  t.end()
})
