import { test } from 'tap'
import { createClient, sessionKey, type ServerOptions, type SessionState } from '../../client/dist/client.js'

await test('a trading socket never shares the connection of another session', async (t) => {
  const opened: string[] = []
  let expires_at = 5000
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
    const active = isLoggedIn && { authenticated: true, expires_at, idle_expires_at: expires_at, scope: '' }
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
  expires_at = 6000
  await client.session.check()
  t.equal(await open(), 3)
  t.equal(await open(), 3)
  expires_at = 5000
  await client.session.check()
  t.equal(await open(), 3, 'the first session again')
})

/** An active session. */
const state = (more: object): SessionState => ({
  status: 'active',
  expiresAt: 1,
  idleExpiresAt: 1,
  scope: '',
  subject: 'a',
  ...more,
})

await test('sessionKey differs between sessions and users, and stays while the server cannot tell', (t) => {
  const key = sessionKey(state({}))
  t.equal(sessionKey(state({ idleExpiresAt: 2, scope: 'trade', expiring: 'idle' })), key)
  t.equal(sessionKey({ status: 'unavailable', last: state({}) as never }), key)
  const others = [{ subject: 'b' }, { expiresAt: 2 }, { subject: undefined }, { session: 'x' }, { session: 'y' }]
  t.equal(new Set([key, ...others.map((more) => sessionKey(state(more)))]).size, 6)
  t.equal(sessionKey(state({ session: 'x', expiresAt: 9 })), sessionKey(state({ session: 'x' })))
  for (const none of [{ status: 'unknown' }, { status: 'anonymous', reason: 'logout' }, { status: 'unavailable' }]) {
    t.equal(sessionKey(none as SessionState), undefined)
  }
  t.end()
})
