import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { RenewedTokens } from '../../src/sessions/renewed-tokens.ts'
import type { Session } from '../../src/sessions/session.ts'
import { besideKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const MARK = besideKey('key', 'renewed')

/** A session with a token that was renewed after a 401. */
const session = (sealed: string): Session =>
  ({ key: 'key', sealed, record: { ...sessionRecord(), isAfterRefusal: true } }) as Session

/** Two instances on a store. The clocks stand. */
function renewing(t: Test) {
  const pass = stoppedClocks(t)
  const store = new MemoryStore()
  let reads = 0
  const readUntracked = store.readUntracked.bind(store)
  store.readUntracked = async (key) => (reads++, readUntracked(key))
  const readsSince = (): number => [reads, (reads = 0)][0] ?? 0
  return { pass, store, here: new RenewedTokens(store), there: new RenewedTokens(store), readsSince }
}

await test('a renewal after a 401 is known to all instances for half a minute', async (t) => {
  const { pass, store, here, there, readsSince } = renewing(t)
  t.equal(await there.recent('key'), undefined)
  t.equal(readsSince(), 0, 'where there was none, one read is enough')
  await here.note('key')
  t.equal((await store.read(MARK))?.value, 'renewed')
  t.strictSame(await there.recent('key'), { retryAfterMs: 30_000, isAccepted: false })
  pass(10_000)
  t.strictSame(await there.recent('key'), { retryAfterMs: 20_000, isAccepted: false })
  t.equal(await there.recent('another key'), undefined)
  pass(20_001)
  t.equal(await there.recent('key'), undefined)
})

await test('the time until the next renewal is half a minute at most, and never 0', async (t) => {
  const { store, here } = renewing(t)
  await here.note('key')
  const readMarked = store.readMarked.bind(store)
  for (const [aheadMs, retryAfterMs] of [
    [29_999, 1],
    [40_000, 1],
    [-5000, 30_000],
  ] as const) {
    store.readMarked = async (...args) => ({ ...(await readMarked(...args)), now: Date.now() + aheadMs })
    t.match(await here.recent('key'), { retryAfterMs })
  }
})

await test('a renewal that cannot be marked is told', async (t) => {
  const { store, here } = renewing(t)
  store.lock = () => Promise.reject(new StoreUnavailable('away'))
  await t.rejects(here.note('key'), StoreUnavailable)
})

await test('a mark that expires while it is read is none', async (t) => {
  const { store, here } = renewing(t)
  await here.note('key')
  store.readUntracked = async () => undefined
  t.equal(await here.recent('key'), undefined)
})

await test('an instance that sees the new token accepted tells the others, once, and the mark lasts no longer', async (t) => {
  const { pass, store, here, there, readsSince } = renewing(t)
  await here.note('key')
  const before = await store.read(MARK)
  pass(100)
  t.equal(here.isAccepted(session('sealed')), false)
  here.accepted(session('sealed'))
  t.equal(here.isAccepted(session('sealed')), true)
  t.equal(here.isAccepted(session('another')), false)
  await setImmediate()
  t.same(await store.read(MARK), { ...before, value: 'accepted' })
  t.strictSame(await there.recent('key'), { retryAfterMs: 29_900, isAccepted: true })
  t.equal(there.isAccepted(session('sealed')), false)
  readsSince()
  here.accepted(session('sealed'))
  await setImmediate()
  t.equal(readsSince(), 0)
  here.accepted(session('another'))
  await setImmediate()
  t.equal(readsSince(), 1)
  t.equal(here.isAccepted(session('another')), true)
})

await test('of a token that was not renewed after a 401 nothing is kept or told', async (t) => {
  const { here, readsSince } = renewing(t)
  const accepted: Session = { ...session('sealed'), record: sessionRecord() }
  here.accepted(accepted)
  t.equal(here.isAccepted(accepted), false)
  await setImmediate()
  t.equal(readsSince(), 0)
})

await test('without a mark, or without the store, an accepted token is known here alone', async (t) => {
  const { store, here } = renewing(t)
  here.accepted(session('sealed'))
  await setImmediate()
  t.equal(await store.read(MARK), undefined)
  store.readUntracked = () => Promise.reject(new StoreUnavailable('away'))
  here.accepted(session('another'))
  await setImmediate()
  t.equal(here.isAccepted(session('another')), true)
})
