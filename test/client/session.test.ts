import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import type { ActiveSession } from '../../client/dist/client.js'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { pageClient, reports } from '../support/client/page-client.ts'
import { SessionServer, type Reason } from '../support/client/session-server.ts'
import { activeTabs, tabSession, watched } from '../support/client/session-tabs.ts'
import { until } from '../support/time/until.ts'
import { WITHIN_A_SECOND, within } from '../support/time/within.ts'
import { exactly } from '../support/exactly.ts'

await test('a store sends nothing before the first subscribe()', async (t) => {
  const server = await SessionServer.start(t)
  const session = tabSession(t, server.url)
  t.same(session.get(), { status: 'unknown' })
  await pause(50)
  t.equal(server.checks, 0)
})

await test('a visitor without a session costs one request and no socket', async (t) => {
  const server = await SessionServer.start(t, { isLoggedIn: false })
  const session = tabSession(t, server.url)
  const states = watched(session)
  await until(() => session.get().status === 'anonymous')
  await pause(300)
  t.same([server.checks, server.handshakes, states], [1, 0, ['anonymous']])
})

await test('twenty tabs share one session socket, and another tab takes over when its tab closes', async (t) => {
  const { server, tabs, session: first } = await activeTabs(t, 20)
  t.equal(server.handshakes, 1)
  first.close()
  await until(() => server.handshakes === 2 && server.open === 1)
  server.expiresInSeconds = 30
  server.push({ event: 'session', ...server.body() })
  await until(() => tabs.slice(1).every((tab) => (tab.get() as { expiring?: string }).expiring === 'absolute'))
})

for (const reason of ['logout', 'expired', 'idle', 'refused', 'revoked'] as const satisfies Reason[]) {
  await test(`all tabs know the end of a session and the reason ${reason}${WITHIN_A_SECOND}`, async (t) => {
    const { server, tabs } = await activeTabs(t, 3)
    server.isLoggedIn = false
    const started = performance.now()
    server.end(reason)
    await until(() => tabs.every((tab) => tab.get().status === 'anonymous'))
    within(t, performance.now() - started, 1000, 'until every tab knows')
    for (const tab of tabs) t.same(tab.get(), { status: 'anonymous', reason })
  })
}

await test('a tab whose trading socket ended too believes the end with its reason at the next check', async (t) => {
  const { server, session } = await activeTabs(t)
  server.checks = 0
  server.isLoggedIn = false
  // This is what a socket does after 4401, as a call does after 401.
  const confirmed = session.confirm()
  server.end('revoked')
  t.equal(await confirmed, false)
  t.same(session.get(), { status: 'anonymous', reason: 'revoked' })
  t.ok(server.checks <= 2, `${server.checks} checks`)
})

for (const blindFor of [0, 1, 2, 3]) {
  await test(`a replaced session stays active if the new cookie arrives after ${blindFor} checks`, async (t) => {
    const { server, tabs, states } = await activeTabs(t, 2)
    server.scope = 'other'
    server.blindFor = blindFor
    server.end('replaced')
    await until(() => tabs.every((tab) => (tab.get() as { scope?: string }).scope === 'other') && server.open === 1)
    t.notOk(states.flat().includes('anonymous'))
  })
}

await test('after a 4401 without a reason, the end of the session is believed after four checks', async (t) => {
  const { server, session } = await activeTabs(t)
  server.checks = 0
  server.isLoggedIn = false
  server.end()
  await until(() => session.get().status === 'anonymous')
  t.equal(server.checks, 4)
})

await test('the reason for which a session ended is not that of the next one', async (t) => {
  const { server, session } = await activeTabs(t)
  session.end('logout')
  t.match(session.get(), { status: 'anonymous', reason: 'logout' })
  server.isLoggedIn = true
  await session.check()
  t.equal(session.get().status, 'active')
  // A socket that is refused would be followed by a check of its own.
  await until(() => server.open === 1)
  await server.delivered()
  server.checks = 0
  server.isLoggedIn = false
  t.equal(await session.confirm(), false)
  t.same(session.get(), { status: 'anonymous', reason: 'gone' })
  t.equal(server.checks, 4, 'another tab may have logged in')
  await session.check()
  t.same(session.get(), { status: 'anonymous', reason: 'gone' }, 'a later check does not forget it')
})

await test('a session that a restart of the server has lost has ended with the reason gone, and every listener hears so once', async (t) => {
  const { server, tabs } = await activeTabs(t, 2)
  const heard = tabs.map((tab) => {
    const calls: [isOther: boolean, status: string][] = []
    tab.subscribe((isOther) => calls.push([isOther, tab.get().status]))
    return calls
  })
  Object.assign(server, { status: 503, hasSocket: false })
  server.drop(1012)
  await until(() => tabs[0]?.get().status === 'unavailable')
  Object.assign(server, { status: 200, hasSocket: true, isLoggedIn: false })
  await until(() => tabs.every((tab) => tab.get().status === 'anonymous'))
  await Promise.all(tabs.map((tab) => tab.check()))
  for (const tab of tabs) t.same(tab.get(), { status: 'anonymous', reason: 'gone' })
  const leading = [
    [false, 'unavailable'],
    [true, 'anonymous'],
  ]
  t.same(heard, [leading, leading.slice(1)])
})

await test('a page that has never known a session is told no reason, also after the server could not tell', async (t) => {
  const server = await SessionServer.start(t, { isLoggedIn: false, status: 503 })
  const session = tabSession(t, server.url)
  const states = watched(session)
  await until(() => session.get().status === 'unavailable')
  server.status = 200
  await session.check()
  t.same(session.get(), { status: 'anonymous', reason: undefined })
  t.same(states, ['unavailable', 'anonymous'])
})

await test('without a session socket, the store polls the server and tries the socket less and less often', async (t) => {
  const { server, session, states } = await activeTabs(t, 1, { hasSocket: false, expiresInSeconds: 2 })
  server.isLoggedIn = false
  await until(() => session.get().status === 'anonymous')
  t.same(states, [['active', 'anonymous']])
  t.ok(server.handshakes <= 4, String(server.handshakes))
})

await test('while the server cannot tell, the state is unavailable and keeps the last session', async (t) => {
  const { server, session } = await activeTabs(t)
  const before = session.get()
  server.status = 503
  await session.check()
  t.same(session.get(), { status: 'unavailable', last: before })
  server.status = 200
  await until(() => session.get().status === 'active')
})

await test('a response to a check from before the end of the session is dropped', async (t) => {
  const { server, session } = await activeTabs(t)
  server.delayMs = 300
  const late = session.check()
  await until(() => server.checks > 1)
  server.isLoggedIn = false
  session.end('logout')
  await late
  t.same(session.get(), { status: 'anonymous', reason: 'logout' })
})

await test('logout() says whether it ends all sessions of the user', async (t) => {
  const server = await SessionServer.start(t, { subject: 'user 7' })
  const client = pageClient(t, new JarBrowser(), server.url)
  for (const options of [undefined, {}, { everywhere: false }, { everywhere: true }]) await client.logout(options)
  t.same(server.logouts, ['', '', '', 'everywhere=true'])
})

await test('a listener hears that another session has begun in the same second, and not that a session goes on', async (t) => {
  const endsAt = Math.floor(Date.now() / 1000) + 3600
  const server = await SessionServer.start(t, { subject: 'user 7', endsAt })
  const session = tabSession(t, server.url)
  const heard: [isOther: boolean, status: string, subject: string | undefined][] = []
  session.subscribe((isOther) => {
    const state = session.get()
    heard.push([isOther, state.status, (state as ActiveSession).subject])
  })
  await until(() => session.get().status === 'active' && server.open === 1)
  await server.delivered()
  const checked = async (changes: Partial<SessionServer>): Promise<unknown> => {
    heard.length = 0
    Object.assign(server, changes)
    await session.check()
    return heard.at(-1)
  }
  t.same(await checked({ subject: 'user 9', tag: 'a' }), [true, 'active', 'user 9'])
  t.equal(await checked({}), undefined, 'nothing has changed')
  t.same(await checked({ scope: 'trade read' }), [false, 'active', 'user 9'], 'the same session with another scope')
  t.same(await checked({ tag: 'b' }), [true, 'active', 'user 9'], 'another session of the same user')
  t.same(await checked({ status: 503 }), [false, 'unavailable', undefined], 'the page keeps showing the last session')
  t.same(await checked({ status: 200, tag: 'c' }), [true, 'active', 'user 9'])
  t.same(await checked({ isLoggedIn: false }), [true, 'anonymous', undefined])
})

await test('an error of a listener is reported and does not stop other listeners', async (t) => {
  const server = await SessionServer.start(t)
  const session = tabSession(t, server.url)
  const reported = reports(t)
  session.subscribe(() => {
    throw new Error('a fault of the page')
  })
  const states = watched(session)
  await until(() => states.length > 0)
  t.match(reported, exactly(...states.map(() => ({ message: 'a fault of the page' }))))
})

await test('the session socket reconnects after a restart of the server, and obeys retry_after', async (t) => {
  const { server, states } = await activeTabs(t)
  const started = Date.now()
  server.drop(1012, 'shutting_down;retry_after=1')
  await until(() => server.open === 0)
  await until(() => server.open === 1)
  t.ok(Date.now() - started >= 1000)
  t.same(new Set(states.flat()), new Set(['active']))
})
