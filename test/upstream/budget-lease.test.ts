import { test } from 'tap'
import { Lease } from '../../src/upstream/budget/lease.ts'

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
