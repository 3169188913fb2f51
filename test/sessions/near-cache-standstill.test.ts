import { setTimeout as pause } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { MAX_DEAF_MS, NearCache } from '../../src/sessions/near-cache.ts'
import { SessionRepository } from '../../src/sessions/repository.ts'
import type { Session } from '../../src/sessions/session.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable, type StoredValue } from '../../src/store/store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { logNames } from '../support/server/settings.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

/** A store that may be slow, or fail. */
class OddStore extends MemoryStore {
  readonly reads: string[] = []
  before: () => Promise<void> = async () => undefined
  isSilent = false

  override onChange(listener: (key: string | undefined) => void): void {
    super.onChange((key) => !this.isSilent && listener(key))
    this.reportAll = () => listener(undefined)
  }
  /** Any key may have changed. */
  reportAll: () => void = () => undefined

  override async read(key: string): Promise<StoredValue | undefined> {
    this.reads.push(key)
    const value = await super.read(key)
    await this.before()
    return value
  }
}

/** A cache, and the sessions `one` and `two`, which it has read. */
async function cacheWith(t: Test, { staleMs = Infinity, ...limits }: { staleMs?: number; maxUnreadMs?: number } = {}) {
  const pass = clockAhead(t)
  const store = Object.assign(new OddStore(), { staleMs })
  const envelope = new Envelope(new Changeable(['a-secret-of-thirty-two-bytes-or-more']))
  const sessions = new SessionRepository(store, envelope, { idleMs: 600_000, maxMs: 3_600_000 }, logNames('tags'))
  const near = new NearCache(sessions, store, limits)
  const { refreshToken: _, ...withoutRefresh } = sessionRecord()
  for (const id of ['one', 'two']) {
    await sessions.create(id, id === 'one' ? sessionRecord() : withoutRefresh)
    await near.load(id)
  }
  store.reads.length = 0
  return {
    store,
    near,
    pass,
    end: (id: string) => sessions.end(sessionKey(id), 'logout'),
    /** Which of the sessions the cache knows. */
    known: () => ['one', 'two'].filter((id) => near.peek(id, sessionKey(id)) !== undefined),
    current: () => ['one', 'two'].filter((id) => near.isCurrent({ id, key: sessionKey(id) })),
    /** Time passes, in which this process does not stand still. */
    live: (ms: number) => {
      for (let passedMs = 0; passedMs < ms; passedMs += 250) {
        pass(250)
        standstill.now()
      }
    },
  }
}

await test('after a standstill a cache says nothing before one session was read, where the store reports every change', async (t) => {
  const { near, store, pass, known, current } = await cacheWith(t)
  t.same(
    [known(), current()],
    [
      ['one', 'two'],
      ['one', 'two'],
    ],
  )
  pass(1000)
  t.same([current(), known()], [[], []])
  await near.load('two')
  t.same(
    [known(), current()],
    [
      ['one', 'two'],
      ['one', 'two'],
    ],
  )
  t.same(store.reads, [sessionKey('two')])
})

await test('after a standstill each session is read again where the store does not report every change', async (t) => {
  const { near, store, pass, known, current } = await cacheWith(t, { staleMs: 60_000 })
  pass(1000)
  t.same([known(), current()], [[], []])
  await near.load('two')
  t.same([known(), current()], [['two'], ['two']])
  await near.load('one')
  t.same(known(), ['one', 'two'])
  t.same(store.reads, [sessionKey('two'), sessionKey('one')])
})

await test('what was asked for before a standstill may have been answered before it', async (t) => {
  const { near, store, pass, known } = await cacheWith(t)
  const reply = Promise.withResolvers<void>()
  store.before = () => reply.promise
  const early = near.load('one')
  pass(1000)
  t.same(known(), [])
  const late = near.load('one')
  t.equal(store.reads.length, 2, 'a later caller does not share it')
  store.before = async () => undefined
  reply.resolve()
  t.not(await early, undefined)
  await late
  t.same(known(), ['one', 'two'])
  pass(1000)
  const another = Promise.withResolvers<void>()
  store.before = () => another.promise
  t.same(known(), [])
  const reading = near.load('two')
  pass(1000)
  another.resolve()
  await reading
  t.same(known(), [], 'this one was asked for before the second standstill')
})

await test('the first reading after a standstill is tried again while the store is away, for a second', async (t) => {
  const { near, store, pass, known } = await cacheWith(t)
  pass(1000)
  t.same(known(), [])
  let failures = 0
  store.before = async () => {
    if (++failures < 3) throw new StoreUnavailable('away')
  }
  t.match(await near.load('one'), { id: 'one' })
  t.equal(failures, 3)
  pass(1000)
  t.same(known(), [])
  store.before = async () => {
    pass(MAX_DEAF_MS)
    throw new StoreUnavailable('still away')
  }
  await t.rejects(near.load('one'), { cause: 'still away' })
  store.before = async () => {
    throw new TypeError('planted')
  }
  pass(1000)
  t.same(known(), [])
  store.reads.length = 0
  await t.rejects(near.load('one'), /planted/)
  t.equal(store.reads.length, 1, 'a fault of this program is told at once')
})

await test('the first reading after a standstill gets no reply: its caller does not wait for ever', async (t) => {
  const { near, store, pass, known } = await cacheWith(t)
  pass(1000)
  t.same(known(), [])
  store.before = () => new Promise(() => undefined)
  await t.rejects(near.load('one'), { cause: { message: /nothing was heard/ } })
})

await test('a store that is away after a standstill is not asked all the time', async (t) => {
  const { near, store, pass, known } = await cacheWith(t)
  pass(1000)
  t.same(known(), [])
  store.before = async () => {
    throw new StoreUnavailable('away')
  }
  await t.rejects(near.load('one'), StoreUnavailable)
  t.ok(store.reads.length > 1 && store.reads.length <= 21, `${store.reads.length} times in a second`)
})

await test('only the first reading after a standstill is bounded, and that of each session where all are read again', async (t) => {
  const bounds = new HeldTimers(t, 'setTimeout', MAX_DEAF_MS)
  for (const [staleMs, bounded] of [
    [Infinity, [1, 0, 0]],
    [60_000, [1, 1, 0]],
  ] as const) {
    const { near, pass } = await cacheWith(t, { staleMs })
    t.equal(bounds.size, 0, 'a new cache has missed nothing')
    const counts: number[] = []
    pass(1000)
    for (const id of ['one', 'two', 'two']) {
      const reading = near.load(id)
      counts.push(bounds.size)
      await reading
    }
    t.same(counts, bounded, `${staleMs}`)
  }
})

await test('a cache knows nothing that may have changed, nor what has ended here or is gone', async (t) => {
  const { near, store, known, end } = await cacheWith(t)
  const reply = Promise.withResolvers<void>()
  store.before = () => reply.promise
  const reading = near.load('one')
  store.reportAll()
  t.same(known(), [])
  const late = near.load('one')
  t.equal(store.reads.length, 2)
  reply.resolve()
  await Promise.all([reading, late])
  t.same(known(), ['one'])
  store.isSilent = true
  await end('one')
  t.same(known(), [], 'at once')
  await near.load('two')
  const slow = Promise.withResolvers<void>()
  store.before = () => slow.promise
  const ending = near.load('two')
  await end('two')
  slow.resolve()
  await ending
  t.same(known(), [])
})

await test('a session that is missing, or past its limits, is neither returned nor known', async (t) => {
  const set = timeAhead(t)
  const { near, store, known } = await cacheWith(t)
  const read = store.read.bind(store)
  store.read = async () => undefined
  t.equal(await near.load('one'), undefined)
  t.same(known(), ['two'])
  store.read = read
  const stored = await store.read(sessionKey('two'))
  set(600_000)
  store.read = async () => stored
  t.equal(await near.load('two'), undefined)
})

await test('a reading counts from when it was asked for', async (t) => {
  const { near, store, live, known } = await cacheWith(t, { maxUnreadMs: 10_000 })
  store.before = async () => live(6000)
  await near.load('one')
  live(3000)
  await pause(5)
  t.same(known(), ['one', 'two'])
  live(2000)
  await pause(5)
  t.same(known(), [])
})

await test('a cache counts what it knows, what it must read, and its memory, and tells of readings', async (t) => {
  const { near, known } = await cacheWith(t)
  const read: Session[] = []
  near.onRead((session) => read.push(session))
  const before = { ...near.counts }
  known()
  near.peek('other', sessionKey('other'))
  near.peek('other', sessionKey('one'))
  t.same(near.counts, { hits: before.hits + 2, misses: before.misses + 2 })
  t.equal(near.isCurrent({ id: 'other', key: sessionKey('one') }), false)
  await near.load('one')
  await near.load('missing')
  t.same(
    read.map(({ id }) => id),
    ['one'],
  )
  const { sessions, bytes } = near.size
  t.equal(sessions, 2)
  let texts = ''
  for (const id of ['one', 'two']) {
    const session = near.peek(id, sessionKey(id))
    if (session === undefined) throw new Error('no session')
    const { accessToken, refreshToken = '', scope, loginKey } = session.record
    texts += [session.id, session.key, session.sealed, accessToken, refreshToken, scope, loginKey].join('')
  }
  t.equal(bytes, 2 * 512 + texts.length)
})
