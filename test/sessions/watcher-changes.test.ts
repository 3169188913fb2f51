import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { besideKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { heldWatcher, OddStore } from '../support/sessions/held-watcher.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'

// In a process of its own: the timers of all others would be held, too.

/** A store that reports nothing to whoever asks last, which is the watcher. */
class SilentStore extends OddStore {
  #last: ((key: string | undefined) => void) | undefined

  override onChange(listener: (key: string | undefined) => void): void {
    if (this.#last !== undefined) super.onChange(this.#last)
    this.#last = listener
  }
}

/** Readings of the store: each is counted, and waits while a test holds them. */
class HeldStore extends OddStore {
  reads = 0
  gate: Promise<void> = Promise.resolve()
  isEmpty = false

  override async read(key: string): ReturnType<OddStore['read']> {
    this.reads++
    const found = await super.read(key)
    await this.gate
    return this.isEmpty ? undefined : found
  }
}

await test('a change that the store reports has that session read again, and one that it may have missed all', async (t) => {
  const one = await heldWatcher(t)
  await one.watch()
  await one.store.remove(one.session.key)
  await setImmediate()
  t.same(one.told, ['gone'])
  const store = new HeldStore()
  const all = await heldWatcher(t, { store })
  await all.watch()
  store.isEmpty = true
  store.reportAll()
  await setImmediate()
  t.same(all.told, ['gone'])
})

await test('a reading of a request tells the watches, too', async (t) => {
  const world = await heldWatcher(t, { store: new SilentStore() })
  const heard: number[] = []
  await world.watch()
  await world.watch({ onChange: ({ idleEndsAt }) => heard.push(idleEndsAt) })
  const { id, key, sealed, idleEndsAt } = world.session
  await world.store.remove(key)
  await world.store.create(key, sealed, idleEndsAt + 1000)
  await world.reader.reload(id)
  t.same(heard, [idleEndsAt + 1000])
})

await test('a session that nobody watches any more is not read', async (t) => {
  const store = new HeldStore()
  const world = await heldWatcher(t, { store })
  const stop = await world.watch()
  const gate = Promise.withResolvers<void>()
  store.gate = gate.promise
  store.reportAll()
  stop()
  gate.resolve()
  await setImmediate()
  t.equal(world.scheduled(), 0, 'nor checked later, although a reading was under way')
  store.reads = 0
  store.reportAll()
  await setImmediate()
  t.equal(store.reads, 0)
})

await test('a session that has been replaced is told so a second later, whatever is read or ends meanwhile', async (t) => {
  const store = new HeldStore()
  const world = await heldWatcher(t, { store })
  await world.watch({ isUse: true })
  const gate = Promise.withResolvers<void>()
  store.gate = gate.promise
  store.reportAll()
  await world.sessions.end(world.session.key, 'replaced')
  gate.resolve()
  await setImmediate()
  t.equal(world.pause(), 1000)
  store.reads = 0
  let isConfirmed = false
  const confirmed = world.watched.confirm(world.session).then((isAsked) => (isConfirmed = isAsked))
  await world.sessions.end(world.session.key, 'logout')
  t.same([world.told, isConfirmed, store.reads], [[], false, 0])
  await world.check()
  await confirmed
  t.same([world.told, isConfirmed], [['replaced'], true])
  t.equal(world.scheduled(), 0)
})

await test('a replacement that only the store knows is confirmed once it has been told', async (t) => {
  const world = await heldWatcher(t, { store: new SilentStore() })
  await world.watch()
  await world.store.create(besideKey(world.session.key, 'tombstone'), 'replaced', Date.now() + 60_000)
  await world.store.remove(world.session.key)
  let isConfirmed = false
  const confirmed = world.watched.confirm(world.session).then(() => (isConfirmed = true))
  await setImmediate()
  t.same([world.told, isConfirmed], [[], false])
  await world.check()
  await confirmed
  t.same(world.told, ['replaced'])
})

await test('whoever watches a session after its end is told', async (t) => {
  const world = await heldWatcher(t)
  await world.watch()
  await world.sessions.end(world.session.key, 'logout')
  await world.watch()
  await setImmediate()
  t.same(world.told, ['logout', 'logout'])
})

await test('a fault of a reading is no end: the session is checked again', async (t) => {
  const world = await heldWatcher(t)
  await world.watch()
  world.reader.recheck = async () => {
    throw new Error('planted')
  }
  t.equal(await world.watched.confirm(world.session), false)
  t.same(world.told, [])
  t.ok((world.pause() ?? 0) <= 1000)
})

await test('the end of a session whose reason cannot be read is gone', async (t) => {
  const world = await heldWatcher(t, { store: new SilentStore() })
  await world.watch()
  await world.store.remove(world.session.key)
  world.store.readUntracked = async () => {
    throw new StoreUnavailable('away')
  }
  t.equal(await world.watched.confirm(world.session), true)
  t.same(world.told, ['gone'])
})

await test('a session that was live a moment ago, however long it has been watched, is recorded as lost', async (t) => {
  const pass = clockAhead(t)
  const world = await heldWatcher(t, { store: new SilentStore(), record: { subject: 'CR1' } })
  const recorded: unknown[] = []
  world.sessions.endings.onRecord((ending) => recorded.push(ending))
  await world.watch()
  pass(400_000)
  await world.check()
  t.same(world.told, [])
  // The store has lost it by then, since its clock runs ahead.
  pass(400_000)
  await world.check()
  await setImmediate()
  t.same(world.told, ['gone'])
  t.same(recorded, [{ key: world.session.key, reason: 'gone', subjectTag: world.session.subjectTag }])
})

await test('a session that ends by its absolute limit is not checked for an idle limit that cannot move', async (t) => {
  const world = await heldWatcher(t, { keepAlive: true, record: { endsAt: Date.now() + 300_000 } })
  await world.watch({ isUse: true })
  t.equal(world.pause(), 96_001)
})

await test('where nobody needs tokens, an expired one changes nothing', async (t) => {
  const world = await heldWatcher(t, { record: { refreshToken: 'refresh', tokenExpiresAt: Date.now() - 1 } })
  await world.watch({ isUse: true })
  t.equal(await world.watched.confirm(world.session), true)
  t.equal(world.pause(), 96_001)
})

await test('a session without a refresh token is not renewed, although its token has expired', async (t) => {
  let renewals = 0
  const renew = async () => {
    renewals++
    return { is: 'ended' } as never
  }
  const record = { refreshToken: undefined as unknown as string, tokenExpiresAt: Date.now() - 1 }
  const world = await heldWatcher(t, { renew, record })
  await world.watch({ isUse: true })
  t.equal(world.pause(), 96_001)
  t.equal(renewals, 0)
})
