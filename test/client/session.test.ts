import { test } from 'tap'
import type { SessionState, SessionStore } from '../../client/dist/client.js'
import { tabSession } from '../support/page-client.ts'
import { SessionServer, type Reason } from '../support/session-server.ts'
import { until } from '../support/until.ts'

/** Writes down the states of a tab. */
function watched(session: SessionStore): { readonly states: SessionState['status'][] } {
  const states: SessionState['status'][] = []
  session.subscribe(() => void states.push(session.get().status))
  return { states }
}

await test('nothing is asked before somebody subscribes', async (t) => {
  const server = await SessionServer.start(t)
  const session = tabSession(t, server.url)
  t.same(session.get(), { status: 'unknown' })
  await new Promise((resolve) => void setTimeout(resolve, 50))
  t.equal(server.asked, 0)
})

await test('a visitor without a session costs one question and no socket', async (t) => {
  const server = await SessionServer.start(t)
  const session = tabSession(t, server.url)
  const { states } = watched(session)
  await until(() => session.get().status === 'anonymous')
  await new Promise((resolve) => void setTimeout(resolve, 300))
  t.same([server.asked, server.handshakes, states], [1, 0, ['anonymous']])
})

await test('twenty tabs know one session by one socket, and the next tab takes over', async (t) => {
  const server = await SessionServer.start(t)
  server.isLoggedIn = true
  const tabs = Array.from({ length: 20 }, () => tabSession(t, server.url))
  for (const tab of tabs) watched(tab)
  await until(() => tabs.every((tab) => tab.get().status === 'active') && server.open === 1)
  t.equal(server.handshakes, 1)
  const [first] = tabs
  first?.close()
  await until(() => server.handshakes === 2 && server.open === 1)
  server.push({ event: 'expiring', at: 1, why: 'idle', now: 1 })
  await until(() => tabs.slice(1).every((tab) => (tab.get() as { expiring?: string }).expiring === 'idle'))
})

for (const reason of ['logout', 'expired', 'idle', 'refused', 'revoked'] as const satisfies Reason[]) {
  await test(`${reason}: all tabs know within a second, and why`, async (t) => {
    const server = await SessionServer.start(t)
    server.isLoggedIn = true
    const tabs = Array.from({ length: 3 }, () => tabSession(t, server.url))
    for (const tab of tabs) watched(tab)
    await until(() => tabs.every((tab) => tab.get().status === 'active') && server.open === 1)
    server.isLoggedIn = false
    const started = performance.now()
    server.end(reason)
    await until(() => tabs.every((tab) => tab.get().status === 'anonymous'))
    t.ok(performance.now() - started < 1000)
    for (const tab of tabs) t.same(tab.get(), { status: 'anonymous', reason })
  })
}

for (const blindFor of [0, 1, 2, 3]) {
  await test(`replaced: active throughout when the new cookie is known after ${blindFor} questions`, async (t) => {
    const server = await SessionServer.start(t)
    server.isLoggedIn = true
    const tabs = Array.from({ length: 2 }, () => tabSession(t, server.url))
    const seen = tabs.map((tab) => watched(tab))
    await until(() => tabs.every((tab) => tab.get().status === 'active') && server.open === 1)
    server.scope = 'other'
    // Each tab asks for itself.
    server.blindFor = blindFor
    server.end('replaced')
    await until(
      () => tabs.every((tab) => (tab.get() as { scope?: string }).scope === 'other') && server.open === 1,
    )
    t.notOk(seen.some(({ states }) => states.includes('anonymous')))
  })
}

await test('4401 without a word is asked about more than once before it is believed', async (t) => {
  const server = await SessionServer.start(t)
  server.isLoggedIn = true
  const session = tabSession(t, server.url)
  watched(session)
  await until(() => session.get().status === 'active' && server.open === 1)
  server.asked = 0
  server.isLoggedIn = false
  server.end()
  await until(() => session.get().status === 'anonymous')
  t.equal(server.asked, 4)
})

await test('without a session socket the server is asked, and the socket tried less and less', async (t) => {
  const server = await SessionServer.start(t)
  server.isLoggedIn = true
  server.hasSocket = false
  server.expiresInSeconds = 2
  const session = tabSession(t, server.url)
  const { states } = watched(session)
  await until(() => session.get().status === 'active')
  server.isLoggedIn = false
  await until(() => session.get().status === 'anonymous')
  t.same(states, ['active', 'anonymous'])
  t.ok(server.handshakes <= 4, String(server.handshakes))
})

await test('nobody can tell: what was known stays, and comes back', async (t) => {
  const server = await SessionServer.start(t)
  server.isLoggedIn = true
  const session = tabSession(t, server.url)
  watched(session)
  await until(() => session.get().status === 'active')
  const before = session.get()
  server.status = 503
  await session.check()
  t.same(session.get(), { status: 'unavailable', last: before })
  server.status = 200
  await until(() => session.get().status === 'active')
})

await test('an answer that was asked for before the session ended is dropped', async (t) => {
  const server = await SessionServer.start(t)
  server.isLoggedIn = true
  const session = tabSession(t, server.url)
  watched(session)
  await until(() => session.get().status === 'active' && server.open === 1)
  server.delayMs = 300
  const late = session.check()
  await until(() => server.asked > 1)
  server.isLoggedIn = false
  session.end('logout')
  await late
  t.same(session.get(), { status: 'anonymous', reason: 'logout' })
})

await test('a listener that throws does not stop others, and is reported', async (t) => {
  const server = await SessionServer.start(t)
  const session = tabSession(t, server.url)
  const reported: unknown[] = []
  const page = globalThis as { reportError?: (error: unknown) => void }
  page.reportError = (error) => void reported.push(error)
  t.teardown(() => delete page.reportError)
  session.subscribe(() => {
    throw new Error('a fault of the page')
  })
  const { states } = watched(session)
  await until(() => states.length === 1)
  t.match(reported, [{ message: 'a fault of the page' }])
})

await test('the server restarts: the socket comes back', async (t) => {
  const server = await SessionServer.start(t)
  server.isLoggedIn = true
  const session = tabSession(t, server.url)
  const { states } = watched(session)
  await until(() => server.open === 1)
  const started = Date.now()
  server.drop(1012, 'shutting_down;retry_after=1')
  await until(() => server.open === 0)
  await until(() => server.open === 1)
  t.ok(Date.now() - started >= 1000)
  t.same(new Set(states), new Set(['active']))
})
