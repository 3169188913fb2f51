import type { Test } from 'tap'
import type { ByClass } from '../../src/config/upstream-budget.ts'
import type { LedgerReply, LedgerReport, LedgerTerms } from '../../src/store/ledger/ledger.ts'
import type { Store } from '../../src/store/store.ts'
import { FIRST_REPORT, NO_TOKENS } from '../support/budget/first-report.ts'
import { until } from '../support/time/until.ts'

const TERMS: LedgerTerms = {
  windows: [{ windowMs: 60_000, ceilings: { orders: 10, otps: 8, reads: 5 } }],
  leaseMs: 1000,
  marginMs: 100,
  bucketMs: 100,
}

let ledgers = 0
let sequence = 0

function report(holder: string, more: Partial<LedgerReport> = {}): LedgerReport {
  return { ...FIRST_REPORT, holder, sequence: ++sequence, ...more }
}

const granted = (reply: LedgerReply): ByClass => (reply.is === 'settled' ? reply.granted : NO_TOKENS)

const used = (reply: LedgerReply): readonly number[] => (reply.is === 'settled' ? reply.used : [])

/** The behaviour of the ledger that processes share, with each kind of Redis. @param store another handle of which is `other` */
export async function ledgerContract(t: Test, store: Store, other: Store): Promise<void> {
  await t.test('handles share a ledger by its name, and it never grants more than its ceilings', async (t) => {
    const name = `shared${++ledgers}`
    const [one, two] = [await store.openLedger(name, TERMS), await other.openLedger(name, TERMS)]
    const another = await store.openLedger(`${name}-other`, TERMS)
    let first = NO_TOKENS
    let heard: Partial<LedgerReport> = {}
    let sentAt = 0
    // A new ledger in Redis grants nothing at first.
    await until(async () => {
      const now = performance.now()
      const sinceMs = Math.ceil(now - sentAt)
      const reply = await one.settle(report('one', { wanted: { ...NO_TOKENS, reads: 9 }, ...heard, sinceMs }))
      if (reply.is === 'settled') heard = { ledger: reply.ledger, heardAt: reply.at }
      sentAt = now
      first = granted(reply)
      return first.reads > 0
    }, 'the ledger grants reads')
    t.equal(first.reads, 5)
    const rest = await two.settle(report('two', { wanted: { orders: 9, otps: 9, reads: 9 } }))
    t.match(rest, { is: 'settled', granted: { orders: 5, otps: 0, reads: 0 } })
    const { waitMs } = rest as Extract<LedgerReply, { is: 'settled' }>
    t.ok(waitMs.orders > 0 && waitMs.otps > 0 && waitMs.reads > 0, 'all must wait for more')
    t.equal(granted(await another.settle(report('one', { wanted: { ...NO_TOKENS, reads: 9 } }))).reads > 5, false)
  })

  await t.test('a report that comes late changes nothing, and a stranger has to tell its history', async (t) => {
    const ledger = await store.openLedger(`late${++ledgers}`, TERMS)
    const late = report('one')
    t.match(await ledger.settle(report('one')), { is: 'settled' })
    t.same(await ledger.settle(late), { is: 'outdated' })
    t.same(await ledger.settle(report('two', { isWhole: false })), { is: 'unknown' })
  })

  await t.test('tokens count from when they were spent, and only once', async (t) => {
    const ledger = await store.openLedger(`spends${++ledgers}`, TERMS)
    const spends = [[40_000, 3] as const, [0, 4] as const]
    t.same(used(await ledger.settle(report('one', { spent: 9, spends }))), [7])
    t.same(used(await ledger.settle(report('one', { spent: 9, spends }))), [7], 'the reply was lost')
    const more = [[0, 5] as const]
    t.same(used(await ledger.settle(report('one', { spent: 10, spends: more, isWhole: false }))), [8])
    const tooOld = [[61_000, 5] as const, [10, 1] as const]
    t.same(used(await ledger.settle(report('two', { spent: 6, spends: tooOld }))), [9])
    const missed = { spent: 13, spends: [[0, 2] as const] }
    t.same(await ledger.settle(report('one', { ...missed, isWhole: false })), { is: 'unknown' }, 'one spend is missing')
    t.same(used(await ledger.settle(report('one', missed))), [11], 'unless it is too old to count')
  })
}
