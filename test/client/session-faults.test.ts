import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import type { ActiveSession } from '../../client/dist/client.js'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { SessionServer } from '../support/client/session-server.ts'
import { activeTabs, tabSession, watched } from '../support/client/session-tabs.ts'
import { until } from '../support/time/until.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

/** How often the package reads the clock. */
const CLOCK_MS = 5000

await test('a response that is not a session makes the state unavailable, and does not make checks follow each other at once', async (t) => {
  const { server, session } = await activeTabs(t)
  const before = session.get()
  for (const body of [
    '<!doctype html><title>Maintenance</title>',
    '{"authenticated":true,"now":17',
    '{"error":"maintenance"}',
    'null',
    '[]',
    '"text"',
    '{"authenticated":true,"now":1,"scope":"trade"}',
    '{"authenticated":true,"now":1,"expires_at":1e999,"idle_expires_at":2,"scope":""}',
  ]) {
    server.garbage = body
    server.checks = 0
    await session.check()
    t.same(session.get(), { status: 'unavailable', last: before }, body)
    await pause(50)
    t.ok(server.checks <= 3, `${server.checks} checks`)
  }
  server.garbage = undefined
  await session.check()
  t.equal(session.get().status, 'active')
})

await test('messages of the session socket that are no session are ignored', async (t) => {
  const { server, session } = await activeTabs(t)
  for (const message of [null, 7, {}, { event: 'session', authenticated: true }, { event: 'news', text: 'later' }]) {
    server.push(message)
  }
  server.scope = 'other'
  server.push({ event: 'session', ...server.body() })
  await until(() => (session.get() as ActiveSession).scope === 'other')
  t.same([server.open, server.handshakes], [1, 1])
})

await test('after close(), a store sends nothing, even if it was about to open its session socket again', async (t) => {
  const { server, session } = await activeTabs(t)
  // The delay before the next attempt is at most a second, by chance. That attempt is not to be on its way yet.
  t.intercept(Math, 'random', { value: () => 0.9 })
  server.drop(1011)
  await until(() => server.open === 0)
  await pause(10)
  session.close()
  const { checks, handshakes } = server
  await pause(1200)
  t.same([server.checks, server.handshakes], [checks, handshakes])
})

await sideBySide({
  'a browser that refuses the address of the session socket: the session is known without it': async (t) => {
    const server = await SessionServer.start(t)
    const session = tabSession(t, server.url, {
      WebSocket: function () {
        throw new DOMException('The operation is insecure.', 'SecurityError')
      } as never,
    })
    const states = watched(session)
    await until(() => states.length === 1)
    t.same(states, ['active'])
    server.isLoggedIn = false
    t.equal(await session.confirm(), false)
  },

  'a page that goes on making calls learns that its session has ended': async (t) => {
    const { server, session } = await activeTabs(t)
    server.hasSocket = false
    server.drop(1011)
    server.isLoggedIn = false
    const calls = setInterval(() => void session.confirm(), 100)
    t.teardown(() => clearInterval(calls))
    await until(() => session.get().status === 'anonymous')
  },

  'check() and confirm() that a later check overtakes resolve after that one': async (t) => {
    const server = await SessionServer.start(t)
    const session = tabSession(t, server.url)
    const checked = session.check()
    // This checks too.
    session.subscribe(() => undefined)
    await checked
    t.equal(session.get().status, 'active')
    server.isLoggedIn = false
    const confirmed = session.confirm()
    void session.check()
    t.equal(await confirmed, false)
    t.equal(session.get().status, 'anonymous')
  },

  'a session stays marked as expiring until it is extended, with and without a session socket': async (t) => {
    for (const hasSocket of [true, false]) {
      const { server, session } = await activeTabs(t, 1, { hasSocket, expiresInSeconds: 62 })
      const active = (): ActiveSession => session.get() as ActiveSession
      t.equal(active().expiring, undefined)
      server.expiresInSeconds = 59
      await until(() => active().expiring === 'absolute')
      await session.check()
      t.equal(active().expiring, 'absolute')
      server.expiresInSeconds = 3600
      await session.check()
      t.equal(active().expiring, undefined)
    }
  },

  'GET /auth/session is not repeated in the last minute of a session before it ends': async (t) => {
    const { server } = await activeTabs(t, 1, { expiresInSeconds: 30 })
    const { checks } = server
    await pause(2500)
    t.equal(server.checks, checks)
  },
})

await test('a check during a confirmation does not shorten it: the cookie of a new login may still arrive', async (t) => {
  const { server, session, states } = await activeTabs(t, 1, { hasSocket: false })
  server.blindFor = 3
  const { checks } = server
  const confirmed = session.confirm()
  await until(() => server.checks > checks)
  await session.check()
  t.equal(await confirmed, true)
  t.notOk(states.flat().includes('anonymous'))
})

await test('a check that is under way when a store is closed changes nothing', async (t) => {
  const { server, session } = await activeTabs(t)
  const before = session.get()
  server.isLoggedIn = false
  server.delayMs = 200
  const { checks } = server
  const checked = session.check()
  await until(() => server.checks > checks)
  session.close()
  await checked
  t.equal(session.get(), before)
})

await test('after the machine slept, the session is checked on a new session socket', async (t) => {
  const clock = new HeldTimers(t, 'setTimeout', CLOCK_MS)
  const sleep = timeAhead(t)
  const { server, session } = await activeTabs(t)
  for (const [jumpMs, handshakes] of [
    [600_000, 2],
    [-600_000, 3],
  ] as const) {
    await until(() => clock.size === 1)
    sleep(jumpMs)
    server.scope = `after ${jumpMs}`
    clock.run()
    await until(() => server.handshakes === handshakes && server.open === 1)
    await until(() => (session.get() as ActiveSession).scope === server.scope)
    t.ok(Math.abs((session.get() as ActiveSession).expiresAt - Date.now() - 3600_000) < 5000)
  }
})

await test('a session socket that is refused with 4429: the session is checked every 30 s instead', async (t) => {
  const server = await SessionServer.start(t, { isFull: true })
  const clock = new HeldTimers(t, 'setTimeout', CLOCK_MS)
  const session = tabSession(t, server.url)
  session.subscribe(() => undefined)
  await until(() => server.handshakes === 1 && clock.size === 1)
  // An attempt after any other close would follow within a second.
  await pause(1100)
  const pass = timeAhead(t)
  for (let round = 0; round < 2; round++) {
    const { checks } = server
    await until(() => clock.size === 1)
    pass(29_500)
    clock.run()
    await until(() => server.checks === checks + 1, 'a check', 3000)
  }
  t.equal(server.handshakes, 1)
})
