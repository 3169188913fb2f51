import { test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { FIRST_REPORT, NO_TOKENS } from '../support/budget/first-report.ts'

const soon = (): number => Date.now() + 60_000

await test('a store of one process is always there, tells every change and has no replicas', async (t) => {
  const store = new MemoryStore()
  t.same([store.staleMs, store.reportsBurials, store.availableForMs('k')], [Infinity, true, Infinity])
  t.same(store.condition(), { why: [], share: 1, clock: { hereAheadMs: undefined, mastersDifferMs: 0 } })
  t.equal(await store.isReplicated(), undefined)
  t.equal(await store.openRefusals(), undefined)
  t.equal(await store.openConfirmed(), store)
  t.doesNotThrow(() => (store.watchBurials(), store.watchReplication(), store.observe()))
  const told: [string, string | undefined][] = []
  for (const name of ['one', 'two']) store.onChange((key) => told.push([name, key]))
  t.equal(await store.create('key', 'v', soon()), true)
  t.same(told, [
    ['one', 'key'],
    ['two', 'key'],
  ])
})

await test('a store of one process counts the keys of sessions, and no others', async (t) => {
  const store = new MemoryStore()
  t.same(await store.facts(), { sessions: 0 })
  const session = sessionKey('one')
  for (const key of [session, `${session}:refresh`, session.replace('session', 'another'), sessionKey('two')])
    await store.create(key, 'v', soon())
  t.same(await store.facts(), { sessions: 2 })
  await store.close()
  t.same(await store.facts(), { sessions: 0 })
})

await test('a store of one process has one index, and a new ledger for each who opens it', async (t) => {
  const store = new MemoryStore()
  const [one, other] = [await store.openIndex(), await store.openIndex()]
  t.equal(await one.add('key', { id: 'a', value: 'v', expiresAt: soon() }, 0), 1)
  t.equal(await other.add('key', { id: 'b', value: 'v', expiresAt: soon() }, 0), 2)
  t.same(
    (await one.list('key')).map(({ id }) => id),
    ['a', 'b'],
  )
  const windows = [{ windowMs: 60_000, ceilings: { orders: 10, otps: 8, reads: 5 } }]
  const terms = { windows, leaseMs: 5000, marginMs: 1000, bucketMs: 100 }
  const report = { ...FIRST_REPORT, wanted: { ...NO_TOKENS, orders: 10 } }
  for (const name of ['default', 'default']) {
    const reply = await (await store.openLedger(name, terms)).settle(report)
    t.match(reply, { is: 'settled', granted: { orders: 10 }, quietMs: 0 })
  }
})
