import { test } from 'tap'
import { LedgerModel } from '../support/budget/ledger-model.ts'
import { scriptTerms, SETTLE } from '../../src/store/ledger/ledger-commands.ts'
import type { LedgerReply, LedgerReport, LedgerTerms } from '../../src/store/ledger/ledger.ts'
import { FIRST_REPORT } from '../support/budget/first-report.ts'
import { seededRandom } from '../support/time/seeded-random.ts'
import { testRedis } from '../support/server/test-server.ts'
import { storeClient } from '../support/redis/store-client.ts'

const TERMS: LedgerTerms = {
  windows: [
    { windowMs: 10_000, ceilings: { orders: 40, otps: 32, reads: 20 } },
    { windowMs: 60_000, ceilings: { orders: 90, otps: 72, reads: 45 } },
  ],
  leaseMs: 7000,
  marginMs: 1250,
  bucketMs: 500,
}
/** Those of an instance whose operator has removed the longer window. */
const SHORT: LedgerTerms = { ...TERMS, windows: TERMS.windows.slice(0, 1) }
const QUIET_MS = 7250
/** How many reports at least, and at most: more are made until every kind of reply has occurred. */
const REPORTS = 600
const MOST_REPORTS = 6000
const KINDS = ['settled', 'unknown', 'outdated', 'granted', 'refused', 'reclaimed'] as const
const ENOUGH = 5

await test('the script of Redis replies as its model does to random reports of four holders', async (t) => {
  const redis = await testRedis(t)
  const client = await storeClient(t, { redis })

  const { random, seed } = seededRandom()
  t.comment(`seed ${seed}`)
  const upTo = (limit: number): number => Math.floor(random() * limit)
  const book = new LedgerModel()
  let clock = 1_700_000_000_000
  let real = 0
  let run = 'a'
  let agreed = TERMS
  const holders = ['one', 'two', 'three', 'four'].map((id) => ({
    id,
    sequence: 0,
    ledger: '',
    heardAt: 0,
    sentAt: 0,
    spent: 0,
    held: { orders: 0, otps: 0, reads: 0 },
  }))
  const kinds = new Map<string, number>()
  const isEnough = (): boolean => KINDS.every((kind) => (kinds.get(kind) ?? 0) >= ENOUGH)
  for (let count = 0; count < REPORTS || (!isEnough() && count < MOST_REPORTS); count++) {
    // Now and then all are silent for longer than any window, and are forgotten.
    const passedMs = upTo(40) === 0 ? 75_000 : upTo(3) === 0 ? upTo(9000) : upTo(300)
    real += passedMs
    clock += passedMs
    if (upTo(40) === 0) clock += upTo(20_000) - 10_000
    if (upTo(60) === 0) agreed = agreed === TERMS ? SHORT : TERMS
    if (upTo(60) === 0) run = `run${upTo(3)}`
    const holder = holders[upTo(holders.length)] ?? holders[0]
    if (holder === undefined) throw new Error('there are holders')
    if (upTo(30) === 0) holder.ledger = ''
    const { held } = holder
    const kept = { orders: upTo(held.orders + 1), otps: upTo(held.otps + 1), reads: upTo(held.reads + 1) }
    holder.spent += held.orders + held.otps + held.reads - kept.orders - kept.otps - kept.reads
    const report: LedgerReport = {
      holder: holder.id,
      sequence: upTo(20) === 0 ? holder.sequence : ++holder.sequence,
      ledger: holder.ledger,
      heardAt: holder.heardAt,
      sinceMs: real - holder.sentAt,
      spent: holder.spent,
      spends: Array.from({ length: upTo(4) }, () => [upTo(9000), upTo(9)] as const).sort(
        ([one], [other]) => other - one,
      ),
      isWhole: upTo(2) === 0,
      held: kept,
      lapsed: upTo(5),
      wanted: { orders: upTo(8), otps: upTo(8), reads: upTo(12) },
    }
    const expected = book.settle(agreed, report, { timeOfDay: clock, run, quietMs: QUIET_MS })
    const text = await client.eval(SETTLE, {
      keys: ['ledger'],
      arguments: [scriptTerms(agreed), JSON.stringify(report), String(clock), run],
    })
    const actual = JSON.parse(text as string) as LedgerReply
    if (!t.same(actual, expected, `reply ${count} of seed ${seed}`)) return
    kinds.set(expected.is, (kinds.get(expected.is) ?? 0) + 1)
    if (expected.is !== 'settled') continue
    const { granted } = expected
    holder.held = {
      orders: kept.orders + granted.orders,
      otps: kept.otps + granted.otps,
      reads: kept.reads + granted.reads,
    }
    Object.assign(holder, { ledger: expected.ledger, heardAt: expected.at, sentAt: real })
    if (granted.orders + granted.otps + granted.reads > 0) kinds.set('granted', (kinds.get('granted') ?? 0) + 1)
    if (granted.orders > 0 && expected.quietMs > 0) kinds.set('reclaimed', (kinds.get('reclaimed') ?? 0) + 1)
    if (expected.waitMs.reads > 0) kinds.set('refused', (kinds.get('refused') ?? 0) + 1)
  }
  for (const kind of KINDS) {
    t.ok((kinds.get(kind) ?? 0) >= ENOUGH, `${kind} replies occur: ${kinds.get(kind)}`)
  }
  const fields = await client.hKeys('ledger')
  t.ok(fields.length < 200, 'the ledger forgets what no window needs')
})

await test('a ledger keeps what the longest window of its users needs, and no longer once they have gone', async (t) => {
  const client = await storeClient(t, { redis: await testRedis(t) })
  let clock = 1_700_000_000_000
  let sequence = 0
  let heard: Partial<LedgerReport> = {}
  const spend = async (terms: LedgerTerms, passedMs: number): Promise<number> => {
    clock += passedMs
    const now = { sequence: ++sequence, spent: sequence, spends: [[0, 1]], sinceMs: passedMs }
    const args = [scriptTerms(terms), JSON.stringify({ ...FIRST_REPORT, ...heard, ...now }), String(clock), 'run']
    const text = await client.eval(SETTLE, { keys: ['ledger'], arguments: args })
    const reply = JSON.parse(text as string) as LedgerReply
    if (reply.is === 'settled') heard = { ledger: reply.ledger, heardAt: reply.at }
    return (await client.hKeys('ledger')).filter((name) => name.startsWith('b:')).length
  }
  await spend(TERMS, 0)
  let kept = 0
  for (let passedMs = 0; passedMs < 60_000; passedMs += 1000) kept = await spend(SHORT, 1000)
  t.equal(kept, 61)
  await spend(TERMS, 1000)
  for (let passedMs = 0; passedMs < 61_000; passedMs += 1000) kept = await spend(SHORT, 1000)
  t.equal(kept, 61 + 1, 'an instance with the longer window has reported')
  for (let passedMs = 0; passedMs < 2000; passedMs += 1000) kept = await spend(SHORT, 1000)
  t.equal(kept, 12)
})
