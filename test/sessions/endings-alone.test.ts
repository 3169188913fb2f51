import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Endings, type Ending } from '../../src/sessions/endings.ts'
import type { Session } from '../../src/sessions/session.ts'
import { besideKey, LEFT_MS, partKey, sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

const HOUR_MS = 3_600_000
const KEY = sessionKey('id')
const REQUESTER = { reqId: 'request', client: '203.0.113.9' }
const TOMBSTONE = besideKey(KEY, 'tombstone')
const LEFT = besideKey(KEY, 'left')

/** The ends of one session, and all that is told of them. */
function endings(store = new MemoryStore()) {
  const opened: unknown[] = []
  const record = sessionRecord()
  const made = new Endings(store, (...sealed) => {
    opened.push(sealed)
    return { record, subjectTag: 'opened' }
  })
  const [ends, records, unreplicated]: [Ending[], Ending[], string[]] = [[], [], []]
  made.onEnd((ending) => ends.push(ending))
  made.onRecord((ending) => records.push(ending))
  made.onUnreplicated((key) => unreplicated.push(key))
  return {
    endings: made,
    store,
    opened,
    record,
    ends,
    records,
    unreplicated,
    begin: () => store.create(KEY, 'sealed', Date.now() + HOUR_MS),
    read: async (key: string) => store.readUntracked(key),
  }
}

const live = (more: Partial<Session['record']> = {}, idleMs = HOUR_MS): Session => ({
  id: 'id',
  key: KEY,
  tag: 'tag',
  subjectTag: 'subject',
  sealed: 'sealed',
  idleEndsAt: Date.now() + idleMs,
  record: sessionRecord(more),
})

await test('an end is told, recorded once, and remembered for a quarter of an hour', async (t) => {
  const { endings: all, begin, ends, records, opened, record, read } = endings()
  await begin()
  const from = Date.now()
  const by = { requester: REQUESTER, id: 'id' }
  t.same(await all.end(KEY, 'logout', by, true), { existed: true, record })
  const ending = { key: KEY, reason: 'logout', requester: REQUESTER, record, subjectTag: 'opened' }
  t.same([ends, records], [[ending], [ending]])
  t.same(opened, [['id', KEY, 'sealed']])
  const tombstone = await read(TOMBSTONE)
  t.equal(tombstone?.value, 'logout')
  t.ok((tombstone?.expiresAt ?? 0) >= from + 900_000 && (tombstone?.expiresAt ?? 0) <= Date.now() + 900_000)
  await setImmediate()
  t.equal(await read(LEFT), undefined, 'nothing is left to record')
  t.same(await all.end(KEY, 'refused', { subjectTag: 'known' }, true), { existed: false })
  t.same(ends.slice(1), [{ key: KEY, reason: 'refused', subjectTag: 'known' }], 'this process acts on it in any case')
  t.equal(records.length, 1)
})

await test('what is known of a session counts for more than what its record says, and without its id nothing is opened', async (t) => {
  const { endings: all, begin, records, opened } = endings()
  await begin()
  await all.end(KEY, 'revoked', { subjectTag: 'known' }, true)
  t.same(records, [{ key: KEY, reason: 'revoked', requester: undefined, subjectTag: 'known' }])
  t.same(opened, [])
})

await test('whoever finds the end of another has not caused it', async (t) => {
  for (const [left, reason, requester] of [
    ['refused sealed', 'refused', undefined],
    ['logout sealed', 'logout', REQUESTER],
    ['later sealed', 'gone', undefined],
  ] as const) {
    const { endings: all, store, records } = endings()
    await store.create(LEFT, left, Date.now() + HOUR_MS)
    t.match(await all.end(KEY, 'logout', { requester: REQUESTER, id: 'id' }, true), { existed: true })
    t.equal(records[0]?.reason, reason)
    t.same(records[0]?.requester, requester, left)
  }
  const { endings: all, store, records } = endings()
  await store.create(LEFT, 'the-name-of-a-recorder', Date.now() + HOUR_MS)
  t.same(await all.end(KEY, 'logout', {}, true), { existed: false })
  t.same(records, [])
})

await test('an end waits for a replica, except that of a session that may be made up', async (t) => {
  for (const isReplicated of [true, false, undefined]) {
    const store = new MemoryStore()
    const asked: string[] = []
    store.isReplicated = (async (key: string) => {
      await setImmediate()
      asked.push(key)
      return isReplicated
    }) as unknown as MemoryStore['isReplicated']
    const { endings: all, begin, unreplicated } = endings(store)
    await all.end(KEY, 'logout', {}, false)
    t.same(asked, [])
    await all.end(KEY, 'logout', {}, true)
    t.same(asked, [KEY], 'whoever ended it may not have waited')
    await begin()
    await all.end(KEY, 'logout', {}, false)
    t.same(asked, [KEY, KEY])
    t.same(unreplicated, isReplicated === false ? [KEY, KEY] : [])
  }
})

/** A store whose commands of one name fail. */
function failing(name: 'replace' | 'bury' | 'lock', error: Error): MemoryStore {
  const store = new MemoryStore()
  store[name] = async () => {
    throw error
  }
  return store
}

await test('an end that has certainly happened is recorded, although the store stays away', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const set = timeAhead(t)
  const { endings: all, begin, records, ends, record } = endings(failing('replace', new StoreUnavailable('away')))
  await begin()
  t.same(await all.end(KEY, 'logout', { id: 'id' }, true), { existed: true, record })
  t.equal(ends.length, 1)
  retries.run()
  await setImmediate()
  t.same(records, [])
  set(LEFT_MS + 1)
  retries.run()
  await setImmediate()
  t.match(records, [{ key: KEY, reason: 'logout', record }])
})

await test('an end that may not have happened is not recorded if the store stays away', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const set = timeAhead(t)
  const { endings: all, begin, records, ends } = endings(failing('bury', new StoreUnavailable('away')))
  await begin()
  await t.rejects(all.end(KEY, 'logout', {}, true), StoreUnavailable)
  retries.run()
  await setImmediate()
  set(LEFT_MS + 1)
  retries.run()
  await setImmediate()
  t.same([ends, records], [[], []])
})

await test('a fault of this program is not taken for a store that is away', async (t) => {
  for (const name of ['replace', 'bury'] as const) {
    const { endings: all, begin } = endings(failing(name, new TypeError('planted')))
    await begin()
    await t.rejects(all.end(KEY, 'logout', {}, true), /planted/)
  }
  const { endings: all } = endings(failing('lock', new TypeError('planted')))
  await t.rejects(all.recordExpiry(live({}, -1)), /planted/)
})

await test('a session that is missing has ended by its limits, as its tombstone says, or for an unknown reason', async (t) => {
  const { endings: all, store } = endings()
  t.equal(await all.reasonOf(live({ endsAt: Date.now() - 1 })), 'expired')
  t.equal(await all.reasonOf(live()), 'gone')
  for (const reason of ['logout', 'replaced', 'refused', 'revoked']) {
    await store.lock(TOMBSTONE, reason, HOUR_MS)
    for (const session of [live(), live({}, -1)]) t.equal(await all.reasonOf(session), reason)
    await store.remove(TOMBSTONE)
  }
  await store.create(TOMBSTONE, 'later', Date.now() + HOUR_MS)
  t.equal(await all.reasonOf(live()), 'gone', 'a reason of a later version')
  store.readUntracked = () => Promise.reject(new StoreUnavailable('away'))
  t.same([await all.reasonOf(live({}, -1)), await all.reasonOf(live())], ['idle', 'gone'], 'while the store is away')
})

await test('of all instances that notice that a session has reached a limit one records it', async (t) => {
  const one = endings()
  const other = endings(one.store)
  await one.endings.recordExpiry(live())
  t.same(one.ends, [])
  const session = live({}, -1)
  const began = performance.now()
  for (const each of [one, other]) await each.endings.recordExpiry(session)
  // The lifetime counts from when the store gets it.
  const tookMs = Math.ceil(performance.now() - began)
  const ending = { key: KEY, reason: 'idle', subjectTag: 'subject' }
  t.same([one.ends, one.records, other.ends, other.records], [[ending], [ending], [], []])
  const marker = await one.read(partKey(KEY, 'lapsed'))
  const laterMs = (marker?.expiresAt ?? 0) - session.record.endsAt
  t.ok(laterMs <= 60_000 + tookMs && laterMs > 50_000, 'for as long as a browser may have its cookie')
})

await test('a session that seems to have reached its idle limit has not expired where it was moved or ended before', async (t) => {
  const moved = endings()
  await moved.begin()
  await moved.endings.recordExpiry(live({}, -1))
  const ended = endings()
  await ended.begin()
  await ended.endings.end(KEY, 'logout', {}, true)
  await ended.endings.recordExpiry(live({}, -1))
  t.same([moved.records, ended.records.map(({ reason }) => reason)], [[], ['logout']])
})

/** A session that was seen live a moment ago. */
const seen = (more: Partial<Parameters<Endings['recordLoss']>[0]> = {}) => ({
  key: KEY,
  subjectTag: 'subject',
  endsAt: Date.now() + HOUR_MS,
  idleEndsAt: Date.now() + HOUR_MS,
  seenAt: standstill.now(),
  ...more,
})

async function losses(t: Test, session: ReturnType<typeof seen>, world = endings()): Promise<number> {
  await world.endings.recordLoss(session)
  if (world.records.length > 0) t.same(world.records, [{ key: KEY, reason: 'gone', subjectTag: 'subject' }])
  t.same(world.ends, [])
  return world.records.length
}

await test('a session that was live within twelve minutes, and that nobody has ended, is lost', async (t) => {
  const pass = clockAhead(t)
  t.equal(await losses(t, seen()), 1)
  t.equal(await losses(t, seen({ endsAt: Date.now() - 1 })), 0)
  t.equal(await losses(t, seen({ idleEndsAt: Date.now() - 1 })), 0)
  const early = seen()
  pass(719_000)
  t.equal(await losses(t, early), 1)
  pass(2000)
  t.equal(await losses(t, early), 0)
  const kept = endings()
  await kept.begin()
  t.equal(await losses(t, seen(), kept), 0, 'this process cannot open it')
  const ended = endings()
  await ended.store.lock(TOMBSTONE, 'logout', HOUR_MS)
  t.equal(await losses(t, seen(), ended), 0)
  const one = endings()
  t.equal(await losses(t, seen(), one), 1)
  t.equal(await losses(t, seen(), endings(one.store)), 0, 'one instance records it')
  const marker = await one.read(partKey(KEY, 'lapsed'))
  t.ok((marker?.expiresAt ?? 0) - Date.now() > 890_000, 'for as long as anybody may notice')
})

await test('a loss that cannot be recorded now is recorded when the store is back', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const world = endings()
  const lock = world.store.lock.bind(world.store)
  world.store.lock = async () => {
    throw new StoreUnavailable('away')
  }
  t.equal(await losses(t, seen(), world), 0)
  world.store.lock = lock
  retries.run()
  await setImmediate()
  t.equal(world.records.length, 1)
})

await test('an instance that ends does not wait for the record that a session has lapsed, which any other may make', async (t) => {
  const { endings: all } = endings(failing('lock', new StoreUnavailable('planted')))
  await all.recordExpiry(live({}, -1))
  await all.recordLoss(seen())
  t.equal(await Promise.race([all.close(), setImmediate('waits')]), undefined)
})
