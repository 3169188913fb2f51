import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import type { SessionRecord } from '../../src/sessions/session.ts'
import { heldWatcher, IDLE_MS, OddStore } from '../support/sessions/held-watcher.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'

// In a process of its own: the timers of all others would be held, too.

await test('a session that is only listened to is checked every 10 s where the store reports ends, and otherwise before a reading is too old', async (t) => {
  for (const [staleMs, reportsBurials, isUse, pauseMs] of [
    [Infinity, true, false, 10_001],
    [Infinity, true, true, 96_001],
    [Infinity, false, false, 96_001],
    [1000, true, true, 801],
    [1000, false, false, 801],
  ] as const) {
    await t.test(`${staleMs} ${reportsBurials} ${isUse}`, async (t) => {
      const world = await heldWatcher(t, { store: new OddStore(staleMs, reportsBurials) })
      await world.watch({ isUse })
      t.equal(world.pause(), pauseMs)
      t.equal(world.store.burialWatches, isUse ? 0 : 1)
      t.equal(world.scheduled(), 1)
      await world.check()
      t.equal(world.pause(), pauseMs, 'and so on')
      t.equal(world.scheduled(), 1)
    })
  }
})

await test('a session is checked when one of its limits is reached', async (t) => {
  const set = timeAhead(t)
  const world = await heldWatcher(t, { record: { endsAt: Date.now() + 5000 } })
  await world.watch({ isUse: true })
  const pauseMs = world.pause() ?? 0
  t.ok(pauseMs > 1000 && pauseMs <= 5001, `${pauseMs}`)
  await world.check()
  t.same(world.told, [], 'a moment early')
  set(5001)
  await world.check()
  t.same(world.told, ['expired'])
  t.equal(world.scheduled(), 0)
})

await test('being watched moves the idle limit where that counts as use, and not otherwise', async (t) => {
  for (const keepAlive of [true, false]) {
    await t.test(`${keepAlive}`, async (t) => {
      const set = timeAhead(t)
      const world = await heldWatcher(t, { keepAlive })
      await world.watch({ isUse: true })
      const { idleEndsAt } = world.session
      set(300_000)
      await world.check()
      const moved = await world.reader.reload(world.session.id)
      t.equal(moved.is === 'live' && moved.session.idleEndsAt > idleEndsAt, keepAlive)
      if (!keepAlive) return
      const pauseMs = world.pause() ?? 0
      t.ok(pauseMs > 1000 && pauseMs <= 61_000, `${pauseMs}: it is moved again within a minute or so`)
    })
  }
})

await test('an idle limit that cannot be moved is tried again, ever more rarely while time is left', async (t) => {
  const set = timeAhead(t)
  const world = await heldWatcher(t, { keepAlive: true })
  await world.watch({ isUse: true })
  // The store refuses writes.
  world.store.extend = (key) => world.store.read(key)
  const pauses: number[] = []
  const due = (world.session.idleEndsAt - IDLE_MS - Date.now()) / 1000
  for (const ms of [due * 1000 + 100, 5000, 100_000, 400_000, 80_000]) {
    set(ms)
    await world.check()
    pauses.push((world.pause() ?? 0) / 1000)
  }
  t.ok((pauses[0] ?? 0) >= 1 && (pauses[0] ?? 0) < 5, `${pauses[0]}`)
  t.ok((pauses[1] ?? 0) >= 5 && (pauses[1] ?? 0) < 15, `${pauses[1]}: as long again as it is late`)
  t.ok((pauses[2] ?? 0) > 20 && (pauses[2] ?? 0) < 30, `${pauses[2]}: a twentieth of the time that is left`)
  t.ok((pauses[3] ?? 0) > 3 && (pauses[3] ?? 0) < 10, `${pauses[3]}`)
  t.ok((pauses[4] ?? 0) >= 1 && (pauses[4] ?? 0) < 2, `${pauses[4]}`)
})

await test('while the store is away a session is checked about once a second', async (t) => {
  const world = await heldWatcher(t, { store: new OddStore(1000) })
  await world.watch()
  world.store.isAway = true
  t.equal(await world.watched.confirm(world.session), false)
  const pauseMs = world.pause() ?? 0
  t.ok(pauseMs >= 500 && pauseMs <= 1000, `${pauseMs}`)
  world.store.isAway = false
  t.equal(await world.watched.confirm(world.session), true)
  t.equal(world.pause(), 10_001)
  t.same(world.told, [])
  t.equal(await world.watched.confirm({ key: 'nobody watches it' }), true)
})

await test('a session that is gone, and nobody knows why, has ended; its watches are told before that is confirmed', async (t) => {
  const world = await heldWatcher(t, { store: new OddStore(1000) })
  await world.watch()
  await world.watch({ isUse: true })
  await world.store.remove(world.session.key)
  t.equal(await world.watched.confirm(world.session), true)
  t.same(world.told, ['gone', 'gone'])
  t.equal(world.scheduled(), 0)
  world.store.reportAll()
  await setImmediate()
  t.same(world.told, ['gone', 'gone'], 'once')
})

await test('any change at the store has all sessions read again, and one that has not ended goes on', async (t) => {
  const world = await heldWatcher(t)
  await world.watch()
  world.store.reportAll()
  await setImmediate()
  t.same(world.told, [])
  await world.sessions.end(world.session.key, 'logout')
  t.same(world.told, ['logout'])
})

await test('a watch that is stopped is told nothing, and the last one ends the checks', async (t) => {
  const world = await heldWatcher(t)
  const [one, other] = [await world.watch({ isUse: true }), await world.watch()]
  t.equal(world.pause(), 96_001)
  one()
  one()
  await world.check()
  t.equal(world.pause(), 10_001, 'only listening is left')
  other()
  t.equal(world.scheduled(), 0)
  const third = await world.watch()
  other()
  t.equal(world.scheduled(), 1)
  await world.sessions.end(world.session.key, 'logout')
  t.same(world.told, ['logout'])
  third()
})

await test('a watch hears of other limits and another scope, and of nothing else', async (t) => {
  const world = await heldWatcher(t)
  const heard: (readonly [number, number, string])[] = []
  await world.watch({
    onChange: ({ idleEndsAt, record: { endsAt, scope } }) => void heard.push([idleEndsAt, endsAt, scope]),
  })
  await world.watch()
  let { session } = world
  const change = async (more: Partial<SessionRecord>): Promise<void> => {
    const next = await world.sessions.replace(session, { ...session.record, ...more })
    if (next === undefined) throw new Error('not replaced')
    session = next
    await setImmediate()
  }
  await change({ accessToken: 'another' })
  t.same(heard, [])
  await change({ scope: 'read' })
  await change({ endsAt: session.record.endsAt - 1000 })
  t.same(
    heard.map(([, endsAt, scope]) => [endsAt, scope]),
    [
      [world.session.record.endsAt, 'read'],
      [world.session.record.endsAt - 1000, 'read'],
    ],
  )
})
