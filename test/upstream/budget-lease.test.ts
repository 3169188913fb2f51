import { test } from 'tap'
import { MemoryLedger } from '../../src/store/ledger/memory-ledger.ts'
import type { LedgerReport } from '../../src/store/ledger/ledger.ts'
import { Lease } from '../../src/upstream/budget/lease.ts'
import { Leaseholder } from '../../src/upstream/budget/leaseholder.ts'

const TERMS = {
  windows: [{ windowMs: 60_000, ceilings: { orders: 10, otps: 8, reads: 5 } }],
  leaseMs: 5000,
  marginMs: 1000,
  bucketMs: 100,
}
const NONE = { orders: 0, otps: 0, reads: 0 }

await test('a token of a lease that has ended is worth nothing, also after the lease was renewed', (t) => {
  let now = 0
  const lease = new Lease({ now: () => now, timeOfDay: () => now, after: () => () => undefined }, TERMS)
  const renew = (orders: number): void => lease.renew({ ...NONE, orders }, { now, timeOfDay: now })
  renew(2)
  const [released, spent] = [lease.take('orders'), lease.take('orders')]
  now = TERMS.leaseMs
  renew(0)
  released?.release()
  t.equal(lease.free('orders'), 0, 'released')
  t.equal(spent?.spend(), false)
  t.equal(lease.spent, 2, 'both count as spent')
  t.same(lease.keep({ orders: 9, otps: 9, reads: 9 }), NONE, 'nothing is held')
  t.end()
})

await test('a lease counts from when its report was sent, however late the reply comes', async (t) => {
  let now = 0
  const clock = { now: () => now, timeOfDay: () => now, after: () => () => undefined }
  const terms = { ...TERMS, alone: TERMS.windows, instances: 1, advanceMs: 2000, refreshMs: 1000, readyOrders: 1 }
  const book = new MemoryLedger()
  const settle = async (report: LedgerReport) => {
    const reply = book.settle(terms, report, { timeOfDay: now, run: '', quietMs: 0 })
    now += TERMS.leaseMs - 1
    return reply
  }
  const holder = new Leaseholder({ settle }, clock, terms)
  await holder.settle({ most: NONE, target: { ...NONE, orders: 2 } })
  t.equal(holder.free('orders'), 2)
  now++
  t.equal(holder.free('orders'), 0, 'the ledger may give these to others')
})
