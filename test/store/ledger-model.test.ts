import { test } from 'tap'
import { LedgerModel } from '../support/budget/ledger-model.ts'
import type { LedgerReply, LedgerReport, LedgerTerms, Spends } from '../../src/store/ledger/ledger.ts'

const TERMS: LedgerTerms = {
  windows: [{ windowMs: 10_000, ceilings: { orders: 40, otps: 32, reads: 20 } }],
  leaseMs: 5000,
  marginMs: 100,
  bucketMs: 50,
}

/** A holder of orders that reports to any book. */
class Holder {
  #sequence = 0
  #ledger = ''
  #heardAt = 0
  #sentAt = 0
  spent = 0

  /** @param wanted of which the ledger grants all */
  report(book: LedgerModel, at: number, held: number, wanted: number, spends: readonly Spends[] = []): LedgerReply {
    const report: LedgerReport = {
      holder: 'one',
      sequence: ++this.#sequence,
      ledger: this.#ledger,
      heardAt: this.#heardAt,
      sinceMs: at - this.#sentAt,
      spent: this.spent,
      spends,
      isWhole: this.#ledger === '',
      held: { orders: held, otps: 0, reads: 0 },
      lapsed: 0,
      wanted: { orders: wanted, otps: 0, reads: 0 },
    }
    const reply = book.settle(TERMS, report, { timeOfDay: at, run: '', quietMs: 0 })
    this.#sentAt = at
    if (reply.is === 'settled') {
      this.#ledger = reply.ledger
      this.#heardAt = reply.at
    }
    return reply
  }
}

await test('tokens of an ended lease stand for those that were spent by its end', (t) => {
  const book = new LedgerModel()
  const holder = new Holder()
  t.match(holder.report(book, 0, 0, 10), { granted: { orders: 10 }, used: [10] })
  holder.spent = 10
  // Nobody knows better until then: all count from the end of the lease.
  t.match(holder.report(book, 7000, 0, 0, [[3000, 10]]), { used: [10] })
  t.match(holder.report(book, 14_200, 0, 0), { used: [10] }, 'a whole window after the spends')
  t.match(holder.report(book, 15_500, 0, 0), { used: [0] }, 'a whole window after the end of the lease')
  t.end()
})

await test('a replica that has missed reports counts what was spent with later tokens', (t) => {
  const master = new LedgerModel()
  const holder = new Holder()
  t.match(holder.report(master, 0, 0, 10), { granted: { orders: 10 } })
  const replica = master.clone()
  t.match(holder.report(master, 500, 0, 0), { used: [0] }, 'the first tokens go back')
  t.match(holder.report(master, 6000, 0, 10), { granted: { orders: 10 } })
  holder.spent = 10
  // The replica saw the lease of the first tokens end at 5,250. Those spent at 9,000 were others.
  t.match(holder.report(replica, 11_000, 0, 0, [[2000, 10]]), { used: [20] })
  t.match(holder.report(replica, 15_500, 0, 0), { used: [10] })
  t.match(holder.report(replica, 19_200, 0, 0), { used: [0] })
  t.end()
})

await test('tokens of an ended lease stand for no more than their number', (t) => {
  const master = new LedgerModel()
  const holder = new Holder()
  holder.report(master, 0, 0, 10)
  const replica = master.clone()
  holder.report(master, 100, 10, 10)
  holder.spent = 20
  // All were spent before 5,250, but the replica has counted only ten of them at the end of the lease that it knows.
  const spends = [[6000, 8] as const, [5000, 7] as const, [4000, 5] as const]
  t.match(holder.report(replica, 8000, 0, 0, spends), { used: [20] })
  t.end()
})

await test('a report that does not explain all that was spent is asked for the rest', (t) => {
  const master = new LedgerModel()
  const holder = new Holder()
  holder.report(master, 0, 0, 10)
  const replica = master.clone()
  holder.spent = 4
  t.match(holder.report(master, 1000, 6, 0, [[200, 4]]), { used: [10] })
  holder.spent = 6
  t.same(holder.report(replica, 2000, 4, 0, [[100, 2]]), { is: 'unknown' })
  t.match(
    holder.report(replica, 2100, 4, 0, [
      [1300, 4],
      [200, 2],
    ]),
    { used: [10] },
  )
  t.end()
})
