import { connect, type AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { test } from 'tap'
import { closeServer, closeUnusedConnections } from '../../src/http/closing.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { NO_TRACES } from '../../src/telemetry/traces/traces.ts'
import { IDENTIFIED } from '../support/login/identity.ts'
import { held, sessionState } from '../support/login/token-endpoint.ts'
import { replace } from '../support/time/replace.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { readAll, startWorld, API } from '../support/world.ts'

/** More than the buffers of a connection hold. */
const ANSWER_BYTES = 16_000_000

await test('a response that is being sent when the server closes arrives whole, however slowly its browser reads', async (t) => {
  const { upstream, cookie, server } = await startWorld(t, {
    ...API,
    settings: { IDEMPOTENCY_MAX_ANSWER_BYTES: String(ANSWER_BYTES), IDEMPOTENCY_MAX_KEPT_BYTES: '100000000' },
  })
  upstream.answer = (_request, socket) => void socket.write(ok('x'.repeat(ANSWER_BYTES)))
  const browser = connect(server.port, '127.0.0.1')
  t.teardown(() => browser.destroy())
  browser.write(
    `POST /api/payment-agents/v1/transfer HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n` +
      'Idempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}',
  )
  // The response to a call with a key is written at once, so the server has nothing left to do when the first byte is here.
  await nextEvent(browser, 'readable')
  const closed = server.close()
  let received = ''
  browser.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  await nextEvent(browser, 'close')
  await closed
  t.equal(received.length - received.indexOf('\r\n\r\n') - 4, ANSWER_BYTES)
})

await test('no connection without a request delays the end of a server, be it half a request or the rest of an answered one', async (t) => {
  const { server, connection } = await startWorld(t)
  // As that of headers.
  server.app.server.server.requestTimeout = 15_000
  const [half, answered] = [await connection(), await connection()]
  half.write('GET /auth/session HTTP/1.1\r\nHost:')
  answered.write('POST /auth/logout HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n')
  await nextEvent(answered, 'data')
  const closed = server.close()
  const rests = await Promise.all([half, answered].map(readAll))
  t.same(rests, ['', ''], 'no time limit has ended them')
  await closed
})

await test('a connection that is opened while sockets still close has a second for its request, which is refused', async (t) => {
  const pass = stoppedClocks(t)
  const server = Fastify()
  closeUnusedConnections(server)
  const sockets = Promise.withResolvers<void>()
  server.addHook('preClose', () => sockets.promise)
  t.teardown(() => sockets.resolve())
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  const half = connect(port, '127.0.0.1')
  const accepted = nextEvent(server.server, 'connection')
  half.write('GET / HTTP/1.1\r\nHost:')
  await accepted
  let sweeps = 0
  t.capture(server.server, 'closeIdleConnections', () => void sweeps++)
  const closed = server.close()
  pass(1000)
  await nextEvent(half, 'close')
  const late = connect(port, '127.0.0.1')
  await nextEvent(late, 'connect')
  const before = sweeps
  await until(() => sweeps > before + 3, 'the server has looked for unused connections')
  late.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
  t.match(await readAll(late), /^HTTP\/1.1 503 /)
  sockets.resolve()
  await closed
})

await test('a login whose callback has come when the server closes is finished, and has its subject', async (t) => {
  const { browser, instance, provider, server, startLogin, upstream } = await startWorld(t, {
    ...IDENTIFIED,
    redis: true,
  })
  const other = await instance()
  const exchange = held(provider.behaviour)
  provider.behaviour = exchange.behaviour
  const { onIdentity } = upstream
  let identify: (() => void) | undefined
  upstream.onIdentity = (...asked) => void (identify = () => onIdentity(...asked))
  const login = await startLogin()
  // Nothing is left at the address to which the callback redirects.
  const arrival = login.finish({ code: 'CR1' }).catch(() => undefined)
  await exchange.asked
  const closed = server.close()
  exchange.release()
  await until(() => identify !== undefined, 'upstream is asked whose session it is')
  identify?.()
  await Promise.all([closed, arrival])
  t.match(await sessionState(browser, other.url), { authenticated: true, subject: 'CR1' })
})

await test('a server that has never listened waits for no balancer to notice that it stops', async (t) => {
  const server = Fastify()
  let isClosed = false
  void closeServer(server, 60_000).then(() => (isClosed = true))
  await until(() => isClosed, 'it is closed')
  t.notOk(server.server.listening)
})

await test('the connection of an upgrade whose request this server fails to begin is closed', async (t) => {
  const { connection, server } = await startWorld(t)
  replace(t, NO_TRACES, 'request', () => {
    throw new TypeError('planted')
  })
  const socket = await connection()
  const head = ['GET /ws/public HTTP/1.1', 'Host: localhost', `Origin: ${server.url}`, 'Connection: Upgrade']
  socket.write(`${[...head, 'Upgrade: websocket'].join('\r\n')}\r\n\r\n`)
  t.match(await readAll(socket), /^HTTP\/1\.1 500 /)
})
