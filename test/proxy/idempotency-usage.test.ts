import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { IdempotencyRecords } from '../../src/proxy/idempotency/idempotency-records.ts'
import { KeyUsage } from '../../src/proxy/idempotency/key-usage.ts'
import { digestOf } from '../../src/proxy/idempotency/record.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { idempotencyKey, partKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { ANSWER, DIGEST, LIMITS, sessionIn } from '../support/idempotency/records.ts'
import { claim, repeat } from '../support/idempotency/two-instances.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'

const SKEW_MS = 5000
const TIMES = { leaseMs: 15_000, clockSkewMs: SKEW_MS, settleMs: 0 }

function recordsOn(store: MemoryStore, limits = LIMITS): IdempotencyRecords {
  return new IdempotencyRecords(store, new Envelope(new Changeable([SECRETS])), limits, TIMES)
}

await test('a session may use twice as many keys as it may keep responses, and not one more', async (t) => {
  const usage = new KeyUsage(new MemoryStore(), { ...LIMITS, maxRecords: 4, maxKeptBytes: 10 })
  for (const [records, isWithin, isExhausted] of [
    [4, true, false],
    [5, false, false],
    [8, false, false],
    [9, false, true],
  ] as const) {
    t.equal(usage.isWithinLimits({ records, bytes: 10 }), isWithin, `${records}`)
    t.equal(usage.isExhausted({ records, bytes: 0 }), isExhausted, `${records}`)
  }
  t.equal(usage.isWithinLimits({ records: 4, bytes: 11 }), false)
  t.equal(usage.prepaidBytes, 2)
})

await test('records and bytes are counted for each session, until the shorter of IDEMPOTENCY_TTL_SECONDS and the session ends', async (t) => {
  const store = new MemoryStore()
  const [session, other] = [await sessionIn(store), await sessionIn(store)]
  const usage = new KeyUsage(store, { ...LIMITS, maxRecords: 4, maxKeptBytes: 10 })
  const ttls: number[] = []
  const keys = new Set<string>()
  const count = store.count.bind(store)
  store.count = (key, by, ttlMs) => {
    ttls.push(ttlMs)
    keys.add(key)
    return count(key, by, ttlMs)
  }
  t.same(await usage.addRecord(session), { records: 1, bytes: 2 })
  t.same(await usage.addRecord(session), { records: 2, bytes: 4 })
  t.same(await usage.addBytes(session, 7), { records: 2, bytes: 11 })
  t.same(await usage.addBytes(session, -7), { records: 2, bytes: 4 })
  t.same(await usage.addRecord(other), { records: 1, bytes: 2 })
  t.same(await usage.removeRecord(session), { records: 1, bytes: 2 })
  t.same(await usage.removeRecord(session), { records: 0, bytes: 0 })
  t.same(await usage.removeRecord(session), { records: 0, bytes: 0 }, 'the counts have started anew meanwhile')
  t.same(new Set(ttls), new Set([LIMITS.ttlMs]))
  t.same([...keys], [partKey(session.key, 'keys'), partKey(other.key, 'keys')], 'other versions count there, too')
  const set = timeAhead(t)
  set(session.record.endsAt - Date.now() - 20_000)
  ttls.length = 0
  await usage.addRecord(session)
  t.ok(ttls.every((ttlMs) => ttlMs > 10_000 && ttlMs <= 20_000))
})

await test('a record lasts for IDEMPOTENCY_TTL_SECONDS, but hardly longer than its session', async (t) => {
  const set = timeAhead(t)
  const store = new MemoryStore()
  const session = await sessionIn(store)
  const records = recordsOn(store)
  const expiresAt = async (key: string): Promise<number> => {
    const claimed = await records.claim(session, key, DIGEST)
    if (claimed.is !== 'claimed') throw new Error(claimed.is)
    await claimed.claim.keep(ANSWER)
    return (await store.read(idempotencyKey(session.id, key)))?.expiresAt ?? 0
  }
  const [from, until] = [Date.now(), await expiresAt('early')]
  t.ok(until >= from + LIMITS.ttlMs && until <= Date.now() + LIMITS.ttlMs)
  set(session.record.endsAt - Date.now() - 1000)
  t.equal(await expiresAt('late'), session.record.endsAt + SKEW_MS, 'by the clock of the store')
})

await test('a call whose record ends before its lease is not sent from then on', async (t) => {
  const set = timeAhead(t)
  const store = new MemoryStore()
  const session = await sessionIn(store)
  const held = await claim(recordsOn(store, { ...LIMITS, ttlMs: 3000 }), session)
  t.equal(held.maySend, true)
  set(4000)
  t.equal(held.maySend, false)
  await store.remove(held.own.recordKey)
  await held.finish({ is: 'unknown' })
  t.equal(held.isLost, true)
  t.equal(await store.read(held.own.recordKey), undefined, 'the key counts as new')
})

await test('a record that appears and disappears again and again is said to be running', async (t) => {
  const store = new MemoryStore()
  const session = await sessionIn(store)
  let attempts = 0
  store.create = async () => {
    attempts++
    return false
  }
  t.equal(await repeat(recordsOn(store), session), 'running')
  t.equal(attempts, 5)
})

await test('a shutdown waits for the calls that are running', async (t) => {
  const records = recordsOn(new MemoryStore())
  const call = Promise.withResolvers<void>()
  const failing = Promise.withResolvers<void>()
  const tracked = records.track(call.promise)
  const failed = t.rejects(records.track(failing.promise), /planted/)
  let isClosed = false
  const closed = records.close().then(() => (isClosed = true))
  failing.reject(new Error('planted'))
  await failed
  await setImmediate()
  t.equal(isClosed, false)
  call.resolve()
  await Promise.all([tracked, closed])
  t.equal(isClosed, true)
})

await test('a call that is over takes no memory', async (t) => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const records = recordsOn(new MemoryStore())
  /** A call that is over once this is called. */
  let end: () => void = () => t.fail('nobody waits for the call')
  const track = (): WeakRef<Promise<void>> => {
    const tracked = Promise.resolve()
    const call = { finally: (over: () => void) => ((end = over), tracked) }
    void records.track(call as unknown as Promise<void>)
    return new WeakRef(tracked)
  }
  const tracked = track()
  await setImmediate()
  collectGarbage()
  t.ok(tracked.deref(), 'the shutdown would wait for it')
  await setImmediate()
  end()
  end = () => undefined
  await setImmediate()
  collectGarbage()
  t.equal(tracked.deref(), undefined)
})

await test('a repetition is found by the beginning of its digest', async (t) => {
  const store = new MemoryStore()
  const session = await sessionIn(store)
  const compact = recordsOn(store, { ...LIMITS, isCompact: true })
  const held = await compact.claim(session, 'key', DIGEST)
  if (held.is !== 'claimed') throw new Error(held.is)
  for (const end of ['running', 'answered'] as const) {
    if (end === 'answered') await held.claim.keep(ANSWER)
    for (const records of [compact, recordsOn(store)]) {
      t.match(await records.claim(session, 'key', DIGEST), { is: end, claim: undefined })
      t.equal((await records.claim(session, 'key', digestOf('POST', '/other', null))).is, 'otherCall')
    }
  }
})
