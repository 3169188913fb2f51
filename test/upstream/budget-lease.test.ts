import { test } from 'tap'
import { AlonePart } from '../../src/upstream/budget/alone.ts'
import { Lease } from '../../src/upstream/budget/lease.ts'
import { budgetTerms } from '../../src/upstream/budget/terms.ts'

const TERMS = {
  windows: [
    { windowMs: 60_000, ceilings: { orders: 10, otps: 8, reads: 5 } },
    { windowMs: 600_000, ceilings: { orders: 50, otps: 40, reads: 25 } },
  ],
  leaseMs: 5000,
  marginMs: 1000,
  bucketMs: 100,
}
const NONE = { orders: 0, otps: 0, reads: 0 }
const ALL = { orders: 9, otps: 9, reads: 9 }

/** A lease whose clocks a test moves. */
function leaseOf(terms: Partial<typeof TERMS> = {}) {
  const times = { now: 0, timeOfDay: 1000 }
  const clock = { now: () => times.now, timeOfDay: () => times.timeOfDay, after: () => () => undefined }
  const lease = new Lease(clock, { ...TERMS, ...terms })
  return {
    clock,
    lease,
    times,
    pass: (ms: number) => {
      times.now += ms
      times.timeOfDay += ms
    },
    renew: (granted: Partial<typeof NONE>) => lease.renew({ ...NONE, ...granted }, { ...times }),
  }
}

await test('a token of a lease that has ended is worth nothing, also after the lease was renewed', (t) => {
  const { lease, pass, renew } = leaseOf()
  renew({ orders: 2 })
  const [released, spent] = [lease.take('orders'), lease.take('orders')]
  pass(TERMS.leaseMs)
  renew({})
  released?.release()
  t.equal(lease.free('orders'), 0, 'released')
  t.equal(spent?.spend(), false)
  t.equal(lease.spent, 2, 'both count as spent')
  t.same(lease.keep(ALL), NONE, 'nothing is held')
  t.end()
})

await test('an order may spend any token, its own first; a one-time URL those of reads; a read no others', (t) => {
  const { lease, renew } = leaseOf()
  t.equal(lease.take('reads'), undefined)
  renew({ orders: 1, otps: 1, reads: 1 })
  lease.take('orders')
  t.same(lease.keep(ALL), { orders: 1, otps: 1, reads: 1 }, 'what is taken is held')
  t.equal(lease.free('orders'), 0)
  lease.take('orders')?.release()
  t.equal(lease.free('otps'), 1, 'given back')
  lease.take('orders')?.spend()
  t.equal(lease.free('otps'), 0)
  lease.take('otps')
  t.equal(lease.free('reads'), 0)
  t.equal(lease.spent, 1)
  const other = leaseOf()
  other.renew({ orders: 1, otps: 1 })
  t.equal(other.lease.take('reads'), undefined)
  t.ok(other.lease.take('otps'))
  t.equal(other.lease.take('otps'), undefined)
  t.same(other.lease.keep({ ...ALL, orders: 0 }), { orders: 0, otps: 1, reads: 0 })
  t.end()
})

await test('an order takes the token of a read last, and a read takes that one', (t) => {
  const { lease, renew } = leaseOf()
  renew({ reads: 2 })
  t.equal(lease.take('orders')?.spend(), true)
  t.equal(lease.take('reads')?.spend(), true)
  t.equal(lease.spent, 2)
  t.same(lease.keep(ALL), NONE, 'what is spent is not held')
  t.end()
})

await test('whatever is asked first after the end of a lease, its tokens have lapsed', (t) => {
  for (const ask of ['free', 'take', 'keep', 'renew', 'isOver'] as const) {
    const { lease, pass, renew } = leaseOf()
    t.same([lease.isOver, lease.lapsed, lease.spent], [true, 0, 0], 'nothing has lapsed before the first lease')
    renew({ orders: 1, otps: 2, reads: 4 })
    pass(TERMS.leaseMs)
    if (ask === 'free') t.equal(lease.free('reads'), 0)
    if (ask === 'take') t.equal(lease.take('orders'), undefined)
    if (ask === 'keep') t.same(lease.keep(ALL), NONE)
    if (ask === 'renew') {
      renew({ reads: 1 })
      t.equal(lease.free('reads'), 1)
      pass(TERMS.leaseMs)
    }
    t.equal(lease.isOver, true)
    t.same([lease.lapsed, lease.spent], ask === 'renew' ? [1, 8] : [7, 7], ask)
  }
  t.end()
})

await test('a lease that ends with nothing unspent adds nothing to what was spent', (t) => {
  const { lease, pass, renew } = leaseOf()
  renew({ orders: 1 })
  lease.take('orders')?.spend()
  pass(TERMS.leaseMs)
  t.equal(lease.isOver, true)
  t.same(lease.spends(9), [[TERMS.leaseMs, 1]])
  t.end()
})

await test('spends are kept for the longest window and the margin', (t) => {
  const { lease, pass, renew } = leaseOf()
  renew({ orders: 2 })
  lease.take('orders')?.spend()
  pass(600_500)
  renew({ orders: 1 })
  lease.take('orders')?.spend()
  t.same(
    lease.spends(9).map(([, count]) => count),
    [1, 1, 1],
    'the token that lapsed meanwhile counts, too',
  )
  t.end()
})

for (const which of ['now', 'timeOfDay'] as const) {
  await test(`a lease ends by whichever clock is there first (${which}), and its tokens lapse`, (t) => {
    const { lease, times, renew } = leaseOf()
    t.equal(lease.isOver, true)
    renew({ orders: 2, reads: 1 })
    lease.take('reads')
    times[which] += TERMS.leaseMs - 1
    t.equal(lease.isOver, false)
    t.equal(lease.lapsed, 0)
    t.equal(lease.free('orders'), 2)
    times[which] += 1
    t.equal(lease.isOver, true)
    t.equal(lease.lapsed, 3)
    t.equal(lease.spent, 3)
    t.equal(lease.free('orders'), 0)
    times[which] += TERMS.leaseMs - 1
    t.equal(lease.lapsed, 3)
    times[which] += 1
    t.equal(lease.lapsed, 0, 'the ledger gives them back no more')
    t.equal(lease.spent, 3)
    t.end()
  })
}

await test('lapsed tokens are given back within half of the shortest window', (t) => {
  const windows = [{ windowMs: 4000, ceilings: NONE }, ...TERMS.windows]
  const { lease, pass, renew } = leaseOf({ windows })
  renew({ orders: 1 })
  pass(TERMS.leaseMs + 1999)
  t.equal(lease.lapsed, 1)
  pass(1)
  t.equal(lease.lapsed, 0)
  t.end()
})

await test('a lease knows when its last tokens were spent, for as long as the longest window', (t) => {
  const { lease, pass, renew } = leaseOf()
  renew({ orders: 3 })
  lease.take('orders')?.spend()
  pass(200)
  for (const token of [lease.take('orders'), lease.take('orders')]) token?.spend()
  pass(300)
  const both = [
    [500, 1],
    [300, 2],
  ]
  t.same(lease.spends(Infinity), both)
  t.same(lease.spends(2), [[300, 2]])
  t.same(lease.spends(3), both)
  t.same(lease.spends(0), [])
  pass(4000)
  renew({ orders: 1 })
  pass(TERMS.leaseMs + 1000)
  t.equal(lease.lapsed, 1)
  t.same(lease.spends(1), [[1000, 1]], 'a lapsed one was spent when the lease ended')
  pass(601_000 - 9300)
  renew({ orders: 1 })
  lease.take('orders')?.spend()
  t.same(
    lease.spends(Infinity).map(([, tokens]) => tokens),
    [1, 1],
    'the first three count no more',
  )
  t.equal(lease.spent, 5)
  t.end()
})

await test('a process without the ledger has the part set aside for it, a whole window after its start', (t) => {
  const { clock, pass } = leaseOf()
  const terms = { ...TERMS, alone: TERMS.windows } as unknown as ConstructorParameters<typeof AlonePart>[1]
  const alone = new AlonePart(clock, terms)
  pass(600_999)
  t.equal(alone.free('orders'), 0)
  t.equal(alone.take('orders'), undefined)
  pass(1)
  t.equal(alone.free('orders'), 10)
  t.equal(alone.free('reads'), 5)
  const tokens = Array.from({ length: 5 }, () => alone.take('reads'))
  t.equal(alone.take('reads'), undefined)
  t.equal(alone.free('orders'), 5)
  t.equal(tokens[0]?.isAlone, true)
  tokens[0]?.release()
  t.equal(alone.free('orders'), 6)
  for (const token of tokens.slice(1)) t.equal(token?.spend(), true)
  t.equal(alone.free('orders'), 6)
  pass(60_999)
  t.equal(alone.free('orders'), 6)
  pass(1)
  t.equal(alone.free('orders'), 10)
  for (let count = 0; count < 9; count++) alone.take('orders')?.spend()
  for (const ms of [61_000, 61_000, 61_000, 61_000]) {
    pass(ms)
    for (let count = 0; count < 9; count++) alone.take('orders')?.spend()
  }
  pass(61_000)
  t.equal(alone.free('orders'), 1, 'of the longer window')
  t.equal(alone.free('reads'), 0)
  t.end()
})

await test('the terms of a budget follow from its settings', (t) => {
  const config = {
    name: 'default',
    windows: [
      { calls: 300, windowMs: 60_000 },
      { calls: 1000, windowMs: 480_000 },
    ],
    shares: { orders: 1, otps: 0.8, reads: 0.5 },
    alone: 0.1,
    instances: 3,
  }
  t.same(budgetTerms(config), {
    windows: [
      { windowMs: 60_000, ceilings: { orders: 270, otps: 216, reads: 135 } },
      { windowMs: 480_000, ceilings: { orders: 900, otps: 720, reads: 450 } },
    ],
    leaseMs: 15_000,
    marginMs: 1250,
    bucketMs: 250,
    alone: [
      { windowMs: 60_000, ceilings: { orders: 10, otps: 8, reads: 5 } },
      { windowMs: 480_000, ceilings: { orders: 33, otps: 26, reads: 16 } },
    ],
    instances: 3,
    advanceMs: 6000,
    refreshMs: 3000,
    readyOrders: 4,
  })
  const terms = (calls: number, windowMs: number) =>
    budgetTerms({ ...config, alone: 0, instances: 1, windows: [{ calls, windowMs }] })
  t.match(terms(60, 10_000), { leaseMs: 5000, bucketMs: 42, refreshMs: 10_000 / 60, readyOrders: 2 })
  t.match(terms(10, 40_000), { leaseMs: 10_000, advanceMs: 4000, readyOrders: 1 })
  const twice = { ...config, alone: 0, windows: [...config.windows.slice(0, 1), { calls: 50, windowMs: 3_600_000 }] }
  t.match(budgetTerms(twice), { bucketMs: 1500, readyOrders: 2 })
  t.end()
})
