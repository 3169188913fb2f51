import { test } from 'tap'
import { active, ANONYMOUS, following, followerOn, NOW } from '../support/client/follower-on.ts'

await test('a check tells the other tabs that a session has begun or ended, and no visitor who has never been logged in', async (t) => {
  const { follower, answer, told } = followerOn(t)
  follower.subscribe(() => undefined)
  await answer(ANONYMOUS)
  t.same(told(), [])
  for (const [body, expected] of [
    [active(), [active()]],
    [active({ scope: 'read' }), []],
    [ANONYMOUS, [{ reason: 'gone' }]],
    [ANONYMOUS, []],
  ] as const) {
    void follower.check()
    await answer(body)
    t.same(told(), expected)
  }
  follower.end('logout')
  t.same(told(), [{ reason: 'logout' }])
})

await test('a check that finds another session tells the other tabs, whose data may be those of another user', async (t) => {
  const { follower, answer, told } = await following(t)
  void follower.check()
  await answer(active({ session: 'B' }))
  t.same(told(), [active({ session: 'B' })])
  void follower.check()
  await answer()
  void follower.check()
  await answer(active({ session: 'B' }))
  t.same(told(), [], 'it is the same')
  void follower.check()
  await answer()
  void follower.check()
  await answer(active({ session: 'C' }))
  t.same(told(), [active({ session: 'C' })])
})

await test('what the session socket says is shown, and passed on to the other tabs', async (t) => {
  const { follower, lead, hears, told, asks, sockets } = await following(t)
  lead()
  const paused = active({ orders_paused: { closing: true } })
  await hears({ event: 'session', ...paused })
  t.match(follower.get(), { status: 'active', ordersPaused: { closing: true } })
  await hears({ event: 'notice', notice: { message: 'Closing early' } })
  t.match(follower.get(), { notice: { message: 'Closing early' } })
  await hears({ event: 'expiring' })
  t.match(follower.get(), { notice: { message: 'Closing early' } })
  await hears({ event: 'notice', notice: null })
  t.equal(follower.get().notice, undefined)
  t.match(told(), [paused, { notice: { message: 'Closing early' } }, { event: 'expiring' }, { notice: null }])
  t.equal(asks(), 0)
  await hears({ event: 'ended', reason: 'idle' })
  t.match(told(), [{ reason: 'idle' }])
  t.equal(asks(), 1, 'it is only a hint')
  t.ok(sockets[0]?.isClosed)
})

await test('the end that another tab has heard of is checked, and told to nobody', async (t) => {
  const { follower, answer, hearsTab, told, timers, asks } = await following(t)
  await hearsTab({ reason: 'logout' })
  t.equal(asks(), 1)
  await answer(ANONYMOUS)
  t.match(follower.get(), { status: 'anonymous', reason: 'logout' })
  t.same([told(), timers.delays], [[], []])
  await hearsTab({ reason: 'gone' })
  await answer(ANONYMOUS)
  t.match(follower.get(), { status: 'anonymous', reason: 'logout' }, 'the first reason stays')
  t.same(told(), [])
})

await test('an end by a new login is believed after four checks, unless the new session shows, which is news', async (t) => {
  const { follower, answer, hearsTab, told, timers } = await following(t)
  await hearsTab({ reason: 'replaced' })
  await answer(ANONYMOUS)
  t.equal(follower.get().status, 'active')
  t.same(timers.delays.includes(600), true)
  timers.run()
  await Promise.resolve()
  await answer(active({ session: 'B' }))
  t.match(follower.get(), { status: 'active', session: 'B' })
  t.same(told(), [], 'they have heard it themselves')
})

await test('what another tab says of the same session is shown, and of any other one is checked and told to nobody', async (t) => {
  const { follower, answer, hearsTab, told, asks } = await following(t)
  await hearsTab(active({ scope: 'read' }))
  t.match([follower.get(), asks()], [{ scope: 'read' }, 0])
  await hearsTab(active({ session: 'B' }))
  t.match([follower.get(), asks()], [{ session: 'A' }, 1])
  await answer(active({ session: 'B' }))
  t.match(follower.get(), { session: 'B' })
  void follower.check()
  await answer(ANONYMOUS)
  told()
  await hearsTab(active({ session: 'B' }))
  await answer(active({ session: 'B' }))
  t.match(follower.get(), { status: 'active', session: 'B' })
  t.same(told(), [])
})

await test('a tab that says too late that a session is active is told so by the leader, and by no other', async (t) => {
  for (const [isLeader, body, expected] of [
    [true, ANONYMOUS, [{ reason: 'logout' }]],
    [false, ANONYMOUS, []],
    [true, active(), []],
  ] as const) {
    const { follower, answer, hearsTab, told, lead } = await following(t)
    if (isLeader) lead()
    follower.end('logout')
    told()
    await hearsTab(active())
    await answer(body)
    t.same(told(), expected, JSON.stringify([isLeader, body.authenticated]))
  }
})

await test('while the end of a session is checked, what another tab says of it is checked too, until the socket tells', async (t) => {
  const { follower, lead, hears, hearsTab, asks } = await following(t)
  lead()
  void follower.confirm()
  t.equal(asks(), 1)
  await hearsTab(active({ scope: 'read' }))
  t.equal(asks(), 1)
  t.match(follower.get(), { scope: 'trade' })
  await hears(active())
  await hearsTab(active({ scope: 'read' }))
  t.equal(asks(), 0)
  t.match(follower.get(), { scope: 'read' })
})

await test('a session socket that closes is opened again by the check of its delay, and not after the session has ended', async (t) => {
  const { sockets, lead, timers, world, answer, follower } = await following(t)
  lead()
  sockets[0]?.onclose?.({ code: 1006, reason: '' })
  world.now += 500
  timers.run()
  await answer(active())
  t.equal(sockets.length, 2)
  void follower.check()
  await answer(ANONYMOUS)
  t.ok(sockets[1]?.isClosed)
  t.same(timers.delays, [])
})

await test('a visitor who is not logged in hears of an end once, and checks it once', async (t) => {
  const { answer, hearsTab, asks, timers } = await following(t, ANONYMOUS)
  await hearsTab({ reason: 'replaced' })
  await answer(ANONYMOUS)
  t.same([asks(), timers.delays], [1, []])
})

await test('the response to a check that is older than what the socket has told, or than another check, is dropped', async (t) => {
  const { follower, lead, hears, answer } = await following(t)
  lead()
  void follower.check()
  await hears(active({ scope: 'read' }))
  void follower.check()
  await answer(ANONYMOUS)
  t.match(follower.get(), { status: 'active', scope: 'read' })
  await answer(active())
  t.match(follower.get(), { scope: 'trade' })
})

await test('a tab whose session has ended, and that cannot ask when it hears of a login, asks again until it can', async (t) => {
  const { follower, answer, hearsTab, lead, sockets, world, timers, asks } = await following(t)
  lead()
  follower.end('logout')
  await hearsTab(active({ session: 'B' }))
  for (const _ of [1, 2]) {
    t.equal(asks(), 1)
    await answer()
    world.now += 5000
    timers.run()
  }
  t.equal(asks(), 1)
  await answer(active({ session: 'B' }))
  t.match(follower.get(), { status: 'active', session: 'B' })
  t.equal(sockets.length, 2, 'it keeps the socket for all tabs')
})

await test('a tab that hears of an end and cannot ask shows it, asks again until it can, and finds who has logged in meanwhile', async (t) => {
  const { follower, lead, hears, answer, told, sockets, world, timers, asks } = await following(t)
  lead()
  await hears({ event: 'ended', reason: 'idle' })
  for (const _ of [1, 2]) {
    t.equal(asks(), 1)
    await answer()
    t.match(follower.get(), { status: 'anonymous', reason: 'idle' })
    t.equal(sockets.length, 1)
    world.now += 5000
    timers.run()
  }
  told()
  await answer(active({ session: 'B' }))
  t.match(follower.get(), { status: 'active', session: 'B' })
  t.same([told(), sockets.length], [[active({ session: 'B' })], 2])
  await hears({ event: 'ended', reason: 'idle' })
  await answer(ANONYMOUS)
  t.same(timers.delays, [], 'a server that has said so is not asked again')
})

await test('messages that have waited for a frozen tab make it ask twice at most, and the last one counts', async (t) => {
  const { follower, answer, hearsTab, asks } = await following(t)
  for (let minute = 0; minute < 60; minute++) await hearsTab(active({ session: 'B', now: NOW + 60 * minute }))
  t.equal(asks(), 1)
  await answer(ANONYMOUS)
  t.equal(asks(), 1)
  await answer(active({ session: 'B' }))
  t.match([follower.get(), asks()], [{ status: 'active', session: 'B' }, 0])
  await hearsTab(active({ session: 'C' }))
  t.equal(asks(), 1)
})
