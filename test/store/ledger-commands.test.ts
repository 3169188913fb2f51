import { test } from 'tap'
import { ledgerCommands, scriptTerms, SETTLE } from '../../src/store/ledger/ledger-commands.ts'
import { LEDGER } from '../../src/store/ledger/ledger.ts'
import { MemoryLedger } from '../../src/store/ledger/memory-ledger.ts'
import { FIRST_REPORT, NO_TOKENS } from '../support/budget/first-report.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const WINDOWS = [{ windowMs: 60_000, ceilings: { orders: 10, otps: 8, reads: 5 } }]
const TERMS = { windows: WINDOWS, leaseMs: 5000, marginMs: 1000, bucketMs: 100 }
const REPORT = { ...FIRST_REPORT, wanted: { ...NO_TOKENS, orders: 3 } }

await test('a ledger is settled by its script under its name, with the terms that instances agree on', async (t) => {
  const { settle } = ledgerCommands('mine', TERMS)
  const redis = { send: async (...args: unknown[]) => args }
  t.same(await settle.send(redis as never, () => 30, REPORT), [
    'bff:1:budget:mine',
    ['EVAL', SETTLE, '1', 'bff:1:budget:mine', scriptTerms(TERMS), JSON.stringify(REPORT)],
    undefined,
  ])
  t.same(JSON.parse(scriptTerms(TERMS)), { ...TERMS, quietMs: 5250, ...LEDGER })
  t.match(SETTLE, /redis\.call/)
  t.same(
    settle.reply('{"is":"outdated"}', () => 30, REPORT),
    { is: 'outdated' },
  )
  t.end()
})

await test('a process alone has its own ledger, which is not quiet at its beginning', (t) => {
  const { settle } = ledgerCommands('mine', TERMS)
  const reply = settle.memory(new MemoryLedger(), REPORT)
  t.match(reply, { is: 'settled', granted: { ...NO_TOKENS, orders: 3 }, quietMs: 0 })
  t.end()
})

await test('a process alone counts a lease to its very end, since it has one clock', (t) => {
  const pass = stoppedClocks(t)
  const { settle } = ledgerCommands('mine', TERMS)
  const ledger = new MemoryLedger()
  const first = settle.memory(ledger, REPORT)
  const ledgerId = first.is === 'settled' ? first.ledger : ''
  pass(5000)
  const more = {
    ...REPORT,
    ledger: ledgerId,
    heardAt: 0,
    sinceMs: 5000,
    sequence: 2,
    held: { ...NO_TOKENS, orders: 3 },
    wanted: NO_TOKENS,
  }
  t.match(settle.memory(ledger, more), { is: 'settled', used: [6] }, 'what was held then counts as spent')
  t.end()
})

await test('a holder reports when two thirds of its lease have passed', (t) => {
  t.match(LEDGER, { leaseSkewMs: 250, clockSkewMs: 250, ttlMs: 86_400_000, tokensPerReport: 4, reportsPerWindow: 60 })
  t.ok(Math.abs(LEDGER.renewPart - 0.667) < 0.001)
  t.end()
})
