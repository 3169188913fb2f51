import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { MAX_DEAF_MS } from '../../src/sessions/near-cache.ts'
import type { Session } from '../../src/sessions/session.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { cacheWith } from '../support/sessions/odd-cache.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

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
  const { near, store, pass, known } = await cacheWith(t, { hasRunningClocks: true })
  pass(1000)
  t.same(known(), [])
  store.before = () => new Promise(() => undefined)
  await t.rejects(near.load('one'), { cause: { message: /nothing was heard/ } })
})

await test('a store that is away after a standstill is not asked all the time', async (t) => {
  const { near, store, pass, known } = await cacheWith(t, { hasRunningClocks: true })
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
    const { near, pass, anew } = await cacheWith(t, { staleMs })
    const first = anew().load('one')
    t.equal(bounds.size, 0, 'a new cache has missed nothing')
    await first
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
  const { near, store, known } = await cacheWith(t)
  const set = timeAhead(t)
  const read = store.read.bind(store)
  store.read = async () => undefined
  t.equal(await near.load('one'), undefined)
  t.same(known(), ['two'])
  store.read = read
  const stored = await store.read(sessionKey('two'))
  set(700_000)
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
