import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { on, once } from 'node:events'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import { test } from 'tap'
import { takenPort } from '../support/server/http-server.ts'
import { ALONE } from '../support/server/settings.ts'
import { nextEvent, until, within } from '../support/time/until.ts'
import { testServer } from '../support/server/test-server.ts'
import { startWorld } from '../support/world.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

const HEALTH = 'GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX-CSRF: 1\r\n\r\n'

await sideBySide({
  'a connection that pipelines too many requests is closed': async (t) => {
    const API_URL = `http://127.0.0.1:${await takenPort(t)}`
    const server = await testServer(t, { ...ALONE, API_URL })
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined)
    socket.write(HEALTH.repeat(1000))
    await nextEvent(socket, 'close')
    t.pass('the connection is closed')
  },

  'the limit stands after requests whose path cannot be decoded': async (t) => {
    const API_URL = `http://127.0.0.1:${await takenPort(t)}`
    const server = await testServer(t, { ...ALONE, API_URL })
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined)
    const closed = once(socket, 'close')
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    for (let count = 1; count <= 40; count++) {
      socket.write('GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n')
      await until(() => text.split('HTTP/1.1 400').length > count)
    }
    socket.write(HEALTH.repeat(30))
    await within(closed, 'the connection is closed')
  },
})

await test('of requests that have arrived together only a few are handled, whether or not each has had its response', async (t) => {
  const { connection, server } = await startWorld(t)
  let begun = 0
  const count = (message: unknown): void => {
    if ((message as { server: unknown }).server === server.app.server.server) begun++
  }
  subscribe('http.server.request.start', count)
  t.teardown(() => unsubscribe('http.server.request.start', count))
  const get = 'GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n'
  // While Node reads a body, responses may be finished.
  const post = 'POST /nothing HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx'
  for (const [requests, most] of [
    [get, 17],
    [post, 65],
    [get.repeat(10) + post, 65],
  ] as const) {
    begun = 0
    const socket = await connection()
    const closed = new Promise((resolve) => void socket.once('close', resolve))
    socket.resume().write(requests.repeat(1000))
    await within(closed, 'the connection is closed')
    t.ok(begun <= most, `${begun} requests`)
  }
})

await test('a few pipelined requests get their responses, and so do many sequential ones', async (t) => {
  const { server } = await startWorld(t)
  const socket = connect(server.port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  const eightAnswers = async (): Promise<void> => {
    let text = ''
    for await (const chunk of on(socket, 'data')) {
      text += String(chunk)
      if (text.split('HTTP/1.1 200').length > 8) return
    }
  }
  for (let round = 1; round <= 10; round++) {
    socket.write(HEALTH.repeat(8))
    await within(eightAnswers(), 'eight answers')
  }
  t.notOk(socket.destroyed)
})

const upgrade = (origin: string): string =>
  `GET /ws/public HTTP/1.1\r\nHost: localhost\r\nOrigin: ${origin}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`

await test('a pipelined upgrade is refused, and its connection ends', async (t) => {
  const { server, upstream } = await startWorld(t)
  const openConnections = promisify(server.app.server.server.getConnections.bind(server.app.server.server))
  const before = await openConnections()
  const ahead: [what: string, request: string, response: RegExp][] = [
    ['a request that waits for upstream', HEALTH, /^HTTP\/1.1 200 OK/],
    ['one that is answered at once', 'GET /auth/session HTTP/1.1\r\nHost: localhost\r\n\r\n', /"authenticated":false/],
    ['one that is refused', 'GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n', /"not_found"/],
    ['an upgrade', upgrade('http://evil.example'), /"origin_rejected"/],
    ['an upgrade that succeeds', upgrade(server.url), /^HTTP\/1.1 101 /],
  ]
  for (const [what, request, first] of ahead) {
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined)
    socket.write(request + upgrade(server.url))
    let response = ''
    socket.on('data', (chunk: Buffer) => (response += chunk.toString()))
    await nextEvent(socket, 'close')
    t.match(response, first, `${what}: the first request gets its response`)
    t.equal(
      response.match(/HTTP\/1.1 101/g)?.length ?? 0,
      what.endsWith('succeeds') ? 1 : 0,
      'nothing is upgraded behind it',
    )
  }
  // These clients leave before their response. Nothing of them may be left.
  for (let count = 0; count < 20; count++) {
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined)
    await nextEvent(socket, 'connect')
    socket.write(HEALTH + upgrade(server.url), () => (count % 2 === 0 ? socket.destroy() : socket.end()))
    await nextEvent(socket.resume(), 'close')
  }
  await until(async () => (await openConnections()) === before)
  t.equal(upstream.sockets().public, 0)
})

await test('one session cannot take all connections to upstream', async (t) => {
  const { browser, server, upstream } = await startWorld(t, { user: 'demo' })
  const cookie = browser.cookieHeader(new URL(server.url), new URL(server.url))
  // Headers without the body that they announce: each keeps a call open.
  const head = `POST /api/payment-agents/v1/transfer HTTP/1.1\r\nHost: localhost\r\nX-CSRF: 1\r\nCookie: ${cookie}\r\nContent-Length: 10\r\n\r\n`
  const refused = Promise.withResolvers<string>()
  for (let count = 0; count < 101; count++) {
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined)
    t.teardown(() => socket.destroy())
    socket.on('data', (chunk: Buffer) => refused.resolve(chunk.toString()))
    socket.write(head)
  }
  t.match(await within(refused.promise, 'a call is refused'), /^HTTP\/1.1 429 [^]*retry-after: 1[^]*rate_limited/)
  t.equal(upstream.requests.filter(({ method }) => method === 'POST').length, 0)
})
