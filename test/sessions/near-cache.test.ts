import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { NearCache } from '../../src/sessions/near-cache.ts'
import { SessionRepository } from '../../src/sessions/repository.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { StoredValue } from '../../src/store/store.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { logNames } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

/** A store whose reads can be delayed, so that a value may be old when it arrives. */
class SlowStore extends MemoryStore {
  reads = 0
  readonly #listeners: ((key: string | undefined) => void)[] = []
  #gate: Promise<void> = Promise.resolve()
  #open: () => void = () => undefined

  hold(): void {
    this.#gate = new Promise((resolve) => (this.#open = resolve))
  }

  release(): void {
    this.#open()
  }

  override onChange(listener: (key: string | undefined) => void): void {
    this.#listeners.push(listener)
    super.onChange(listener)
  }

  /** Its connection was unhealthy: any key may have changed. */
  reportAny(): void {
    for (const listener of this.#listeners) listener(undefined)
  }

  override async read(key: string): Promise<StoredValue | undefined> {
    this.reads++
    const value = await super.read(key)
    await this.#gate
    return value
  }
}

/** @param sessionIdleMs the idle limit that the session was made with, where it differs from that of the cache */
async function cacheWithSession({ idleMs = 30_000, sessionIdleMs = 30_000 } = {}) {
  const store = new SlowStore()
  const envelope = new Envelope(new Changeable(['a-secret-of-thirty-two-bytes-or-more']))
  const repository = (limitMs: number): SessionRepository =>
    new SessionRepository(store, envelope, { idleMs: limitMs, maxMs: 60_000 }, logNames('tags'))
  const sessions = repository(idleMs)
  const near = new NearCache(sessions, store)
  const created = sessionRecord()
  await repository(sessionIdleMs).create('id', created)
  return { store, sessions, near, key: sessionKey('id'), record: created }
}

await test('where the store does not report every change, a session is current only until its reading is too old', async (t) => {
  for (const [staleMs, isCurrent] of [
    [Infinity, true],
    [100, false],
  ] as const) {
    const { store, sessions } = await cacheWithSession()
    const near = new NearCache(sessions, Object.assign(store, { staleMs }), { maxUnreadMs: 100 })
    const session = await near.load('id')
    if (session === undefined) throw new Error('no session')
    t.equal(near.isCurrent(session), true)
    await until(() => near.peek('id', session.key) === undefined, 'the reading is too old')
    t.equal(near.isCurrent(session), isCurrent, `stale after ${staleMs} ms`)
  }
})

await test('the near cache keeps a session that was read, but no miss', async (t) => {
  const { store, near, key } = await cacheWithSession()
  t.equal(near.peek('id', key), undefined)
  t.equal((await near.load('id'))?.record.accessToken, 'token')
  t.equal(near.peek('id', key)?.record.accessToken, 'token')
  t.equal(await near.load('other'), undefined)
  t.equal(await near.load('other'), undefined)
  t.equal(store.reads, 3, 'a miss is read again')
})

await test('a session is read again after maxUnreadMs, although the store announced no change', async (t) => {
  const { store, sessions, key } = await cacheWithSession()
  const near = new NearCache(sessions, store, { maxUnreadMs: 50 })
  const ends: string[] = []
  sessions.endings.onEnd(({ reason }) => void ends.push(reason))
  await near.load('id')
  t.ok(near.peek('id', key))
  // The session is gone, and no change was announced.
  store.read = async () => undefined
  await until(() => near.peek('id', key) === undefined)
  t.equal(await near.load('id'), undefined)
  t.same(ends, [], 'no end is recorded, because the session had reached none of its limits')
})

await test('a cached session that is too old to be served is still recorded as ended idle', async (t) => {
  const { store, sessions } = await cacheWithSession({ idleMs: 200, sessionIdleMs: 200 })
  const near = new NearCache(sessions, store, { maxUnreadMs: 20 })
  const ends: string[] = []
  sessions.endings.onEnd(({ reason }) => void ends.push(reason))
  const idleEndsAt = (await near.load('id'))?.idleEndsAt ?? Infinity
  await until(() => Date.now() > idleEndsAt)
  t.equal(await near.load('id'), undefined)
  await until(() => ends.length > 0)
  t.same(ends, ['idle'])
})

await test('a full near cache drops the session that was used least recently', async (t) => {
  const { store, sessions } = await cacheWithSession()
  const near = new NearCache(sessions, store, { maxSessions: 3 })
  const ids = ['one', 'two', 'three', 'four']
  for (const id of ids) await sessions.create(id, sessionRecord())
  for (const id of ids.slice(0, 3)) await near.load(id)
  near.peek('one', sessionKey('one'))
  await near.load('four')
  t.equal(near.size.sessions, 3)
  const cached = ids.filter((id) => near.peek(id, sessionKey(id)) !== undefined)
  t.same(cached, ['one', 'three', 'four'])
})

await test('loads at the same time share one read', async (t) => {
  const { store, near } = await cacheWithSession()
  store.hold()
  const loads = [near.load('id'), near.load('id'), near.load('id')]
  store.release()
  t.ok((await Promise.all(loads)).every((session) => session !== undefined))
  t.equal(store.reads, 1)
})

await test('a touch during a load does not share its read, and moves the idle limit', async (t) => {
  const { store, near, key, record } = await cacheWithSession({ sessionIdleMs: 10_000 })
  const before = (await store.read(key))?.expiresAt ?? Infinity
  store.hold()
  const loading = near.load('id')
  const touching = near.touch({ id: 'id', key }, record.endsAt)
  store.release()
  t.equal((await loading)?.record.accessToken, 'token')
  t.ok(((await touching)?.idleEndsAt ?? 0) > before, 'in the session that the touch returns')
  t.ok(((await store.read(key))?.expiresAt ?? 0) > before, 'and in the store')
})

await test('a session that ends while it is read is neither cached nor returned to a later load', async (t) => {
  const { store, sessions, near, key } = await cacheWithSession()
  store.hold()
  const early = near.load('id')
  await sessions.end(key, 'logout')
  const late = near.load('id')
  store.release()
  await early
  t.equal(await late, undefined)
  t.equal(near.peek('id', key), undefined)
})

await test('a session that changes or ends while it is read is not cached, also where nobody reads it again', async (t) => {
  const { store, sessions, near, key } = await cacheWithSession()
  const session = await sessions.load('id')
  if (session === undefined) throw new Error('no session')
  const changes: (() => Promise<unknown>)[] = [
    () => sessions.replace(session, sessionRecord({ accessToken: 'renewed' })),
    () => sessions.end(key, 'logout'),
  ]
  for (const change of changes) {
    store.hold()
    const reading = near.load('id')
    await change()
    store.release()
    t.not(await reading, undefined, 'the read was earlier')
    t.equal(near.peek('id', key), undefined)
  }
})

await test('a session that is read while any key may have changed is not cached', async (t) => {
  const { store, near, key } = await cacheWithSession()
  store.hold()
  const reading = near.load('id')
  store.reportAny()
  store.release()
  t.not(await reading, undefined, 'the read was earlier')
  t.equal(near.peek('id', key), undefined)
})

await test('a change or a removal drops the session from the near cache', async (t) => {
  const { store, sessions, near, key } = await cacheWithSession()
  const session = await near.load('id')
  if (session === undefined) throw new Error('no session')
  await sessions.replace(session, sessionRecord({ accessToken: 'renewed' }))
  t.equal(near.peek('id', key), undefined)
  t.equal((await near.load('id'))?.record.accessToken, 'renewed')
  await store.remove(key)
  t.equal(near.peek('id', key), undefined)
})

await test('a replace with an old version changes nothing, and no write brings an ended session back', async (t) => {
  const { sessions, near, key } = await cacheWithSession()
  const session = await near.load('id')
  if (session === undefined) throw new Error('no session')
  t.ok(await sessions.replace(session, sessionRecord({ accessToken: 'first' })))
  t.equal(await sessions.replace(session, sessionRecord({ accessToken: 'second' })), undefined)
  t.equal((await near.load('id'))?.record.accessToken, 'first')
  t.equal(await sessions.end(key, 'logout'), true)
  t.equal(await sessions.end(key, 'logout'), false)
  t.equal(await sessions.replace(session, sessionRecord()), undefined)
  await sessions.touch(session.id, session.record.endsAt)
  t.equal(await near.load('id'), undefined)
})
