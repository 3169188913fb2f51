import { test, type Test } from 'tap'
import { createClient, sessionKey, type ServerOptions } from '../../client/dist/client.js'
import type { SessionStore } from '../../client/src/core/session/session-store.ts'

/** A client whose connections never open, what it opens besides the session socket, and who is logged in. */
function openingClient(t: Test) {
  const opened: string[] = []
  let session = ''
  const sockets: Opening[] = []
  class Opening {
    declare onmessage?: (event: { data: string }) => void
    constructor(url: string) {
      if (url.endsWith('/ws/session')) return
      opened.push(url)
      sockets.push(this)
    }
    close(): void {
      // There is nothing to close.
    }
  }
  const fetch = async (): Promise<Response> => {
    const active = { authenticated: true, expires_at: 5000, idle_expires_at: 5000, scope: '', session }
    return Response.json({ now: 1000, ...active })
  }
  const client = createClient({ baseUrl: 'http://bff.test', fetch, WebSocket: Opening } as unknown as ServerOptions)
  t.teardown(() => client.close())
  const become = (next: string): Promise<void> => {
    session = next
    return client.session.check()
  }
  return { client, opened, become, speak: (): void => sockets.at(-1)?.onmessage?.({ data: '{}' }) }
}

await test('a trading socket never shares the connection of another session', async (t) => {
  const { client, opened, become } = openingClient(t)
  const open = async (): Promise<number> => {
    client.tradingSocket('VRTC100')
    client.publicSocket()
    await client.session.check()
    return opened.length
  }
  await become('first')
  t.equal(await open(), 2)
  t.equal(await open(), 2, 'the same session')
  // The connection of the first user is still open when the second one opens a socket for the same account.
  await become('second')
  t.equal(await open(), 3)
  t.equal(await open(), 3)
  await become('first')
  t.equal(await open(), 3, 'the first session again')
})

await test('a trading socket shares the connection that was opened before its session was known, and no other does', async (t) => {
  const { client, opened, become } = openingClient(t)
  const open = async (): Promise<number> => {
    client.tradingSocket('VRTC100')
    await Promise.resolve()
    return opened.length
  }
  t.equal(await open(), 1)
  t.equal(await open(), 1)
  await become('first')
  t.equal(await open(), 1)
  await become('second')
  t.equal(await open(), 2)
  await become('first')
  t.equal(await open(), 2)
})

await test('a connection that was opened before its session was known is not taken for one of the next session', async (t) => {
  const { client, opened, become, speak } = openingClient(t)
  client.tradingSocket('VRTC100')
  await become('first')
  speak()
  await become('second')
  client.tradingSocket('VRTC100')
  await Promise.resolve()
  t.equal(opened.length, 2)
})

await test('a connection that has yet to open belongs to the session in which it was asked for', async (t) => {
  const { client, opened, become } = openingClient(t)
  await become('first')
  client.tradingSocket('VRTC100')
  const { end } = client.session as unknown as SessionStore
  end('logout')
  client.tradingSocket('VRTC100')
  await Promise.resolve()
  t.equal(opened.length, 2)
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
