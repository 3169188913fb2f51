import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { SessionServer } from '../support/client/session-server.ts'
import { activeTabs, tabSession } from '../support/client/session-tabs.ts'
import { until } from '../support/time/until.ts'

await test('messages of a stranger on the channel of the tabs change nothing', async (t) => {
  const { server, session } = await activeTabs(t, 1, { endsAt: Math.floor(Date.now() / 1000) + 3600 })
  const before = session.get()
  const stranger = new BroadcastChannel(`trading-bff:${server.url}`)
  t.teardown(() => stranger.close())
  const { checks } = server
  for (const message of [
    null,
    'text',
    7,
    {},
    { event: 'session' },
    { authenticated: true, now: 1, scope: 'all' },
    { why: 'absolute' },
    { reason: 'logout' },
  ]) {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is not a window
    stranger.postMessage(message)
  }
  // The last message is a valid one, which the tab does not believe without a check.
  await until(() => server.checks > checks)
  await session.check()
  t.same(session.get(), before)
})

await test('a tab believes another tab that tells of another session only if the server says the same', async (t) => {
  const endsAt = Math.floor(Date.now() / 1000) + 3600
  const { server, session } = await activeTabs(t, 1, { tag: 'new', subject: 'user 2', endsAt })
  const heard: boolean[] = []
  session.subscribe((isOther) => void heard.push(isOther))
  const before = session.get()
  const other = new BroadcastChannel(`trading-bff:${server.url}`)
  t.teardown(() => other.close())
  const told = async (body: object): Promise<void> => {
    const { checks } = server
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is not a window
    other.postMessage({ ...server.body(), ...body })
    await until(() => server.checks > checks)
    await session.check()
  }
  // The response to a check from before the login has reached that tab late.
  await told({ session: 'old', subject: 'user 1' })
  t.same(session.get(), before)
  t.same(heard, [])
  Object.assign(server, { tag: 'newest', subject: 'user 3' })
  await told({})
  t.match(session.get(), { session: 'newest', subject: 'user 3' })
  t.same(heard, [true])
})

await test('a lock that is granted to a page that has just left is released at once, so that another tab can lead', async (t) => {
  const server = await SessionServer.start(t)
  let grant: (() => unknown) | undefined
  t.intercept(navigator.locks, 'request', {
    value: (_name: string, _options: unknown, callback: () => unknown) => {
      grant = callback
      return new Promise(() => undefined)
    },
  })
  const session = tabSession(t, server.url)
  session.subscribe(() => undefined)
  await until(() => session.get().status === 'active')
  session.close()
  const left = await Promise.race([Promise.resolve(grant?.()).then(() => 'released'), pause(1000, 'held')])
  t.same([left, server.handshakes], ['released', 0])
})

await test('a confirmation goes on to its end, whatever another tab tells meanwhile', async (t) => {
  const endsAt = Math.floor(Date.now() / 1000) + 3600
  const confirms = async (news: (server: SessionServer) => unknown): Promise<boolean> => {
    const { server, session } = await activeTabs(t, 1, { tag: 'mine', endsAt })
    const other = new BroadcastChannel(`trading-bff:${server.url}`)
    t.teardown(() => other.close())
    // That tab has heard it before the session ended.
    const told = news(server)
    server.isLoggedIn = false
    const { checks } = server
    const confirmed = session.confirm()
    await until(() => server.checks > checks)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is not a window
    other.postMessage(told)
    return confirmed
  }
  const state = confirms((server) => server.body())
  const notice = confirms(() => ({ event: 'notice', notice: { message: 'Closed on Sunday' } }))
  t.same(await Promise.all([state, notice]), [false, false], 'the session has ended')
})

await test('a tab that knows the end of its session does not believe what another tab has heard before', async (t) => {
  const endsAt = Math.floor(Date.now() / 1000) + 3600
  const { server, session, states } = await activeTabs(t, 1, { tag: 'mine', endsAt })
  const other = new BroadcastChannel(`trading-bff:${server.url}`)
  t.teardown(() => other.close())
  const told = server.body()
  server.isLoggedIn = false
  await session.check()
  t.equal(session.get().status, 'anonymous')
  const { checks } = server
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is not a window
  other.postMessage(told)
  await until(() => server.checks > checks, 'it asks the server')
  await session.check()
  t.same(states.flat(), ['active', 'anonymous'])
})

await test('a browser that refuses the page both the channel and the lock: the session is followed by this tab alone', async (t) => {
  // Firefox does so where the user blocks cookies, or those of a frame.
  const refusal = new DOMException('The operation is insecure.', 'SecurityError')
  const BroadcastChannel = function (): void {
    throw refusal
  }
  t.intercept(globalThis, 'BroadcastChannel', { value: BroadcastChannel })
  t.intercept(navigator.locks, 'request', { value: () => Promise.reject(refusal) })
  const { server, session } = await activeTabs(t)
  t.equal(server.open, 1)
  server.isLoggedIn = false
  server.end('idle')
  await until(() => session.get().status === 'anonymous')
  server.isLoggedIn = true
  await session.check()
  t.equal(session.get().status, 'active')
})
