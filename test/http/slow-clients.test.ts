import { test } from 'tap'
import { nextEvent, until } from '../support/time/until.ts'
import { readAll, startWorld, API } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'

await test('slow headers, slow bodies and silent connections end within the timeouts, with 408 where a request had begun', async (t) => {
  const {
    connection,
    upstream,
    cookie,
    server: { app },
  } = await startWorld(t, API)
  const { server } = app.server
  t.ok(server.headersTimeout > 0 && server.headersTimeout <= 15_000)
  t.ok(server.requestTimeout > 0 && server.requestTimeout <= 60_000)
  t.ok(server.timeout > 0 && server.timeout <= 180_000, 'an idle connection')
  // The same timeouts, but shorter.
  server.headersTimeout = 200
  server.requestTimeout = 400
  const head = `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n`

  const silent = await connection()
  const slowHead = await connection()
  slowHead.write('GET / HTTP/1.1\r\nHost: h\r\nX-A:')
  const slowBody = await connection()
  slowBody.write(`${head}Content-Length: 10\r\n\r\nhello`)
  const answeredOnce = await connection()
  answeredOnce.write(`${head}Content-Length: 2\r\n\r\n{}`)
  let answer = ''
  answeredOnce.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  await until(() => answer.endsWith('{}'), 'the first request is answered')
  answeredOnce.write('GET /')

  const [nothing, late, cut, second] = await Promise.all([silent, slowHead, slowBody, answeredOnce].map(readAll))
  t.equal(nothing, '', 'a connection without a request gets no response')
  t.match(late, /^HTTP\/1\.1 408 /)
  t.match(cut, /^HTTP\/1\.1 408 /, 'no response had begun')
  t.match(second, /^HTTP\/1\.1 408 /)
  t.equal(upstream.requests.length, 1, 'the slow body does not reach upstream')
})

await test('a timeout writes no 408 into a response that has begun', async (t) => {
  const {
    connection,
    upstream,
    cookie,
    server: { app },
  } = await startWorld(t, API)
  upstream.onHead = (_head, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"half":')
  const socket = await connection()
  const head = `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n`
  // More than the server buffers before it sends a body on.
  socket.write(`${head}Content-Length: 80000\r\n\r\n${'x'.repeat(70_000)}`)
  const [first] = (await nextEvent(socket, 'data')) as [Buffer]
  Object.assign(app.server.server, { headersTimeout: 100, requestTimeout: 100 })
  const text = first.toString() + (await readAll(socket))
  t.match(text, /^HTTP\/1\.1 200 /)
  t.notMatch(text, 'HTTP/1.1 408')
})
