import { test } from 'tap'
import { active, ANONYMOUS, following, followerOn, NOW } from '../support/client/follower-on.ts'

await test('a follower knows nothing and asks nothing before the first subscribe, which joins the other tabs once', async (t) => {
  const { follower, asks, answer, channels, page } = followerOn(t)
  t.same(follower.get(), { status: 'unknown' })
  t.same([asks(), page.size, channels.length], [0, 0, 0])
  const first: boolean[] = []
  const stop = follower.subscribe((isOther) => first.push(isOther))
  follower.subscribe(() => undefined)
  t.same([asks(), channels.length], [1, 1])
  await answer(active())
  t.same(first, [true], 'the session is another one than none')
  stop()
  follower.end('logout')
  t.same(first, [true])
})

await test('a page that is left ends everything, and asks again once it is shown', async (t) => {
  const { event, sockets, channels, lead, timers, asks, answer, follower } = await following(t)
  lead()
  t.equal(sockets.length, 1)
  void follower.check()
  await event('pagehide')
  t.same([sockets[0]?.isClosed, channels[0]?.isClosed, timers.delays], [true, true, []])
  await answer(ANONYMOUS)
  t.equal(follower.get().status, 'active', 'a check that was under way counts no more')
  asks()
  await event('pageshow')
  t.same([asks(), channels.length], [1, 2])
  await answer(ANONYMOUS)
  t.equal(follower.get().status, 'anonymous')
})

await test('a page that is offline closes its socket and asks nothing, and asks when it is online or looked at again', async (t) => {
  const { event, sockets, lead, asks } = await following(t)
  lead()
  await event('offline')
  t.same([asks(), sockets[0]?.isClosed], [0, true])
  await event('online')
  await event('visibilitychange')
  t.equal(asks(), 2)
})

await test('close() ends everything, and the next subscribe begins anew', async (t) => {
  followerOn(t).follower.close()
  const { follower, page, timers, channels, asks, answer, told } = await following(t)
  follower.close()
  t.same([page.size, timers.delays, channels[0]?.isClosed], [0, [], true])
  void follower.check()
  await answer(active({ session: 'B' }))
  t.match(follower.get(), { session: 'B' }, 'the page may ask')
  t.same([timers.delays, told()], [[], []], 'and nobody asks again, or is told')
  asks()
  follower.subscribe(() => undefined)
  t.same([page.size > 0, asks(), channels.length], [true, 1, 2])
})

await test('after close(), no listener is called, also when another one of the same event has closed the follower', async (t) => {
  const { follower, answer, changes } = await following(t)
  let calls = 0
  follower.subscribe(() => {
    calls++
    follower.close()
  })
  follower.subscribe(() => calls++)
  follower.end('logout')
  t.same([calls, changes.length], [1, 2])
  void follower.check()
  await answer(active({ session: 'B' }))
  follower.end('expired')
  t.same([follower.get().status, calls, changes.length], ['anonymous', 1, 2])
  follower.subscribe(() => undefined)
  follower.close()
})

await test('a page that reports the end of its session asks again only if it was asking: the answer may be the next session', async (t) => {
  const { follower, answer, asks, changes } = await following(t)
  follower.end('logout')
  t.equal(asks(), 0)
  const again = follower.check()
  await answer(active({ session: 'B' }))
  await again
  changes.length = 0

  void follower.check()
  asks()
  follower.end('logout')
  t.match(follower.get(), { status: 'anonymous', reason: 'logout' })
  t.equal(asks(), 1)
  await answer(active({ session: 'B' }))
  t.equal(follower.get().status, 'anonymous', 'it may be from before the end')
  await answer(active({ session: 'C' }))
  t.match(follower.get(), { status: 'active', session: 'C' })
  t.same(changes, [
    ['anonymous', true],
    ['active', true],
  ])
})

await test('while the server cannot tell, the last session that was active is kept, and no other state', async (t) => {
  const { follower, answer } = await following(t)
  for (const _ of [1, 2]) {
    void follower.check()
    await answer()
    t.match(follower.get(), { status: 'unavailable', last: { status: 'active', session: 'A' } })
  }
  void follower.check()
  await answer(ANONYMOUS)
  void follower.check()
  await answer()
  t.same(follower.get(), { status: 'unavailable', last: undefined, notice: undefined })
})

await test('confirm() believes that the session has ended after four checks 600 ms apart, or one where the reason is known', async (t) => {
  const { follower, answer, timers, asks } = followerOn(t)
  for (const reason of [undefined, 'replaced', 'logout'] as const) {
    if (reason) follower.end(reason)
    const isAlive = follower.confirm()
    t.equal(follower.confirm() instanceof Promise, true)
    for (let left = reason === 'logout' ? 0 : 3; left > 0; left--) {
      await answer(ANONYMOUS)
      t.same(timers.delays, [600])
      timers.run()
      await Promise.resolve()
    }
    await answer(ANONYMOUS)
    t.equal(await isAlive, false)
    t.match(follower.get(), { status: 'anonymous', reason })
    t.equal(asks(), reason === 'logout' ? 1 : 4)
  }
  const isAlive = follower.confirm()
  await answer(active())
  t.equal(await isAlive, true)
})

await test('a session that is gone without a word has the reason gone, whatever ended the one before', async (t) => {
  const { follower, answer } = await following(t)
  follower.end('logout')
  void follower.check()
  await answer(active({ session: 'B' }))
  void follower.check()
  await answer(ANONYMOUS)
  t.match(follower.get(), { status: 'anonymous', reason: 'gone' })
})

await test('a session that ends within a minute is expiring, by the limit that ends it', async (t) => {
  for (const [idle, absolute, expiring] of [
    [60, 100, 'idle'],
    [60, 60, 'absolute'],
    [100, 60, 'absolute'],
    [61, 61, undefined],
  ] as const) {
    const { follower } = await following(t, active({ idle_expires_at: NOW + idle, expires_at: NOW + absolute }))
    t.match(follower.get(), { expiring, expiresAt: (NOW + absolute) * 1000, idleExpiresAt: (NOW + idle) * 1000 })
  }
})

await test('a session is told from others by its tag alone', async (t) => {
  const { follower, answer } = followerOn(t)
  follower.subscribe(() => undefined)
  const changes = [{}, { session: 'B' }, { session: 'B', subject: 'other' }, { expires_at: NOW + 9 }]
  const seen: unknown[] = []
  for (const change of changes) {
    await answer(active(change))
    seen.push((follower.get() as { session?: string }).session)
    void follower.check()
  }
  t.same(seen, ['A', 'B', 'B', 'A'])
})

await test('a listener hears each change once, and whether the session is another one', async (t) => {
  const { follower, answer, changes } = await following(t)
  for (const body of [active(), active({ scope: 'read' }), active({ session: 'B' }), ANONYMOUS, ANONYMOUS]) {
    void follower.check()
    await answer(body)
  }
  t.same(changes, [
    ['active', true],
    ['active', false],
    ['active', true],
    ['anonymous', true],
  ])
})

await test('the clock of the server counts by how much it is ahead, which follows it by two seconds or more', async (t) => {
  const { follower, answer } = await following(t)
  for (const [aheadSeconds, offMs] of [
    [1, 0],
    [2, 2000],
    [1, 2000],
    [-1, -1000],
  ] as const) {
    void follower.check()
    await answer(active({ now: NOW + aheadSeconds }))
    t.match(follower.get(), { expiresAt: (NOW + 36_000) * 1000 - offMs }, `${aheadSeconds} s`)
  }
})

await test('a check that comes more than two minutes late is made at once, and on a new socket', async (t) => {
  for (const [lateMs, isClosed] of [
    [120_000, false],
    [120_001, true],
    [-120_001, true],
  ] as const) {
    const { world, timers, sockets, lead, hears, asks } = await following(t)
    lead()
    await hears(active())
    t.same(timers.delays, [5000])
    world.now += lateMs
    timers.run()
    t.equal(sockets[0]?.isClosed, isClosed, `${lateMs} ms`)
    t.equal(asks(), Number(isClosed))
  }
})

await test('a session is checked a second after its end or after it becomes expiring, and every five minutes', async (t) => {
  for (const [idleSeconds, dueSeconds] of [
    [3600, 300],
    [200, 141],
    [30, 31],
  ] as const) {
    const { world, timers, asks } = await following(t, active({ idle_expires_at: NOW + idleSeconds }))
    let passed = 0
    while (asks() === 0 && passed < 400) {
      const [ms = 1000] = timers.delays
      world.now += ms
      passed += ms / 1000
      timers.run()
    }
    t.equal(passed, dueSeconds, `${idleSeconds} s`)
  }
})

await test('a listener that two parts of a page share is called for each, and goes on when one of them stops', async (t) => {
  const { follower, answer } = await following(t)
  let calls = 0
  const listener = (): void => void calls++
  const stop = follower.subscribe(listener)
  follower.subscribe(listener)
  void follower.check()
  await answer(active({ scope: 'read' }))
  t.equal(calls, 2)
  stop()
  stop()
  void follower.check()
  await answer(ANONYMOUS)
  t.equal(calls, 3)
})
