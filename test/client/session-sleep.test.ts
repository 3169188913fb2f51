import { test } from 'tap'
import { active, ANONYMOUS, following, NOW } from '../support/client/follower-on.ts'

await test('a machine that has slept gets a new session socket, also if the page asks for the session before its late timer', async (t) => {
  for (const [sleptMs, isClosed] of [
    [120_000, false],
    [120_001, true],
  ] as const) {
    const { world, sockets, lead, hears, event, answer } = await following(t)
    lead()
    await hears(active())
    world.now += sleptMs
    // The user returns.
    await event('visibilitychange')
    await answer(active({ now: NOW + 120 }))
    t.equal(sockets[0]?.isClosed, isClosed, `${sleptMs} ms`)
    await answer(active({ now: NOW + 120 }))
    t.equal(sockets.length, isClosed ? 2 : 1)
  }
})

await test('a page that followed no session for minutes asks once when one begins, and opens one socket', async (t) => {
  const { world, sockets, lead, hearsTab, answer, asks } = await following(t, ANONYMOUS)
  lead()
  for (const changes of [{}, { session: 'B' }]) {
    world.now += 3_600_000
    await hearsTab(active(changes))
    await answer(active(changes))
    await hearsTab({ reason: 'logout' })
    await answer(ANONYMOUS)
  }
  t.equal(asks(), 4)
  t.equal(sockets.length, 2)
})

await test('a page without a session whose clock is set back opens a session socket as soon as a session begins', async (t) => {
  const { world, sockets, lead, hearsTab, answer } = await following(t, ANONYMOUS)
  lead()
  world.now -= 3_600_000
  await hearsTab(active())
  await answer(active())
  t.equal(sockets.length, 1)
})

await test('a page whose clock was set back by less than a sleep asks at once, so that the end of its session is announced in time', async (t) => {
  for (const [backMs, asked] of [
    [1999, 0],
    [2001, 1],
    [90_000, 1],
  ] as const) {
    const { world, timers, lead, hears, asks, sockets } = await following(t)
    lead()
    await hears(active())
    asks()
    world.now -= backMs
    timers.run()
    t.equal(asks(), asked, `${backMs} ms`)
    t.equal(sockets[0]?.isClosed, asked > 0)
  }
})
