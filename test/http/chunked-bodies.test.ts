import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { OPS_TOKEN } from '../support/login/identity.ts'
import { nextEvent, within } from '../support/time/until.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { ACCOUNTS } from '../support/user.ts'
import { API, startWorld } from '../support/world.ts'

/** What Node reads of a connection at a time. */
const READ_BYTES = 65_536

/** The most bytes that were read in a turn of the event loop on a connection to a server that is opened from now on. */
function mostInTurn(t: Test, port: number): () => number {
  const read = new Map<Socket, number>()
  let most = 0
  const look = (): void => {
    for (const [socket, before] of read) {
      most = Math.max(most, socket.bytesRead - before)
      read.set(socket, socket.bytesRead)
    }
    next = setImmediate(look)
  }
  let next = setImmediate(look)
  const opened = (message: unknown): void => {
    const { socket } = message as { socket: Socket }
    if (socket.localPort === port) read.set(socket, 0)
  }
  subscribe('net.server.socket', opened)
  t.teardown(() => {
    unsubscribe('net.server.socket', opened)
    clearImmediate(next)
  })
  return () => most
}

const chunks = (count: number, bytes = 1): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`.repeat(count)

const head = (path: string, cookie: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\nTransfer-Encoding: chunked\r\n\r\n`

await test('a body in chunks of a byte is read once in a turn of the event loop, and reaches upstream whole, in larger chunks', async (t) => {
  const { connection, cookie, upstream, server } = await startWorld(t, API)
  upstream.answer = (_request, socket) => void socket.write(ok('{}'))
  const most = mostInTurn(t, server.port)
  const socket = await connection()
  // So that not all of it is sent on at once.
  const bytes = 75_000
  socket.write(`${head(ACCOUNTS, cookie)}${chunks(bytes)}0\r\n\r\n`)
  t.match(String(await nextEvent(socket, 'data')), /^HTTP\/1\.1 200 /)
  t.equal(upstream.requests[0]?.body.length, bytes)
  const [received = ''] = upstream.received
  t.ok(received.length < 1.1 * bytes, String(received.length))
  t.ok(most() <= READ_BYTES, String(most()))
  socket.write(`${head(ACCOUNTS, cookie)}${chunks(2)}0\r\n\r\n`)
  t.match(String(await nextEvent(socket, 'data')), /^HTTP\/1\.1 200 /, 'the next request of the connection')
})

await test('a rest in chunks of a byte that comes after its response, and is read by nobody, ends the connection', async (t) => {
  const { connection, cookie, server } = await startWorld(t, API)
  const most = mostInTurn(t, server.port)
  for (const path of ['/nothing', '/api/nothing', '/auth/logout']) {
    const socket = await connection()
    socket.write(head(path, cookie))
    await nextEvent(socket, 'data')
    // Not of events, which would reject with the error of a reset connection.
    const closed = new Promise((resolve) => void socket.on('error', () => undefined).once('close', resolve))
    socket.resume().write(chunks(200_000))
    await within(closed, 'the connection ends')
  }
  t.ok(most() <= READ_BYTES, String(most()))
})

await test('the ops port reads chunks by turns, too, also after any number of headers', async (t) => {
  const { server } = await startWorld(t, { settings: { OPS_TOKEN } })
  const port = Number(new URL(server.opsUrl).port)
  const most = mostInTurn(t, port)
  const headers = `Host: h\r\nAuthorization: Bearer ${OPS_TOKEN}\r\n${'a:\r\n'.repeat(3000)}Transfer-Encoding: chunked\r\n\r\n`
  for (const line of ['GET /livez', 'GET /%', 'PUT /controls/orders']) {
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    const closed = new Promise((resolve) => void socket.on('error', () => undefined).once('close', resolve))
    socket.write(`${line} HTTP/1.1\r\n${headers}`)
    socket.resume().write(chunks(200_000))
    await within(closed, 'the connection ends')
  }
  t.ok(most() <= READ_BYTES, String(most()))
})

await test('a rest in chunks as programs write them does not', async (t) => {
  const { connection, cookie } = await startWorld(t, API)
  const socket = await connection()
  socket.write(head('/nothing', cookie))
  t.match(String(await nextEvent(socket, 'data')), /^HTTP\/1\.1 404 /)
  socket.write(`${chunks(500, 1024)}0\r\n\r\nGET /auth/session HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\n\r\n`)
  t.match(String(await nextEvent(socket, 'data')), /^HTTP\/1\.1 200 /)
})
