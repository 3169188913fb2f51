import { test } from 'tap'
import { createClient, sessionKey, type ServerOptions } from '../../client/dist/client.js'

await test('a trading socket never shares the connection of another session', async (t) => {
  const opened: string[] = []
  let session = 'first'
  let isLoggedIn = false
  class Opening {
    constructor(url: string) {
      if (!url.endsWith('/ws/session')) opened.push(url)
    }
    close(): void {
      // The connection never opens, so there is nothing to close.
    }
  }
  const fetch = async (): Promise<Response> => {
    const active = isLoggedIn && {
      authenticated: true,
      expires_at: 5000,
      idle_expires_at: 5000,
      scope: '',
      session,
    }
    return Response.json({ authenticated: false, now: 1000, ...active })
  }
  const client = createClient({ baseUrl: 'http://bff.test', fetch, WebSocket: Opening } as unknown as ServerOptions)
  t.teardown(() => client.close())
  const open = async (): Promise<number> => {
    client.tradingSocket('VRTC100')
    client.publicSocket()
    await client.session.check()
    return opened.length
  }
  isLoggedIn = true
  await client.session.check()
  t.equal(await open(), 2)
  t.equal(await open(), 2, 'the same session')
  // The connection of the first user is still open when the second one opens a socket for the same account.
  session = 'second'
  await client.session.check()
  t.equal(await open(), 3)
  t.equal(await open(), 3)
  session = 'first'
  await client.session.check()
  t.equal(await open(), 3, 'the first session again')
})

await test('sessionKey is the tag of the session, and stays while the server cannot tell', (t) => {
  const active = { status: 'active', session: 'x', expiresAt: 1, idleExpiresAt: 1, scope: '' } as const
  t.equal(sessionKey(active), 'x')
  t.equal(sessionKey({ status: 'unavailable', last: active }), 'x')
  for (const none of [
    { status: 'unknown' },
    { status: 'anonymous', reason: 'logout' },
    { status: 'unavailable' },
  ] as const)
    t.equal(sessionKey(none), undefined)
  t.end()
})
