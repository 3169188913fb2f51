import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { ok } from '../support/upstream/raw-upstream.ts'
import { nextEvent } from '../support/time/until.ts'
import { API, readAll, startWorld } from '../support/world.ts'

const ACCOUNTS = '/api/trading/v1/options/accounts'

/** Blocks this thread, with the server. What has been written has arrived. After a {@link turn}, timers are what runs next. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const post = (cookie: string, bytes: number): string =>
  `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\nContent-Length: ${bytes}\r\n\r\n`

for (const blockedMs of [1200, 400]) {
  await test(`a POST that arrives on an idle connection while the process stands still for ${blockedMs} ms is answered, although the connection is too old`, async (t) => {
    const { connection, upstream, cookie, server } = await startWorld(t, API)
    Object.assign(server.app.server.server, { keepAliveTimeout: 200, keepAliveTimeoutBuffer: 0 })
    const socket = await connection()
    for (const count of [1, 2]) {
      await turn()
      socket.write(`${post(cookie, 2)}{}`)
      if (count === 2) block(blockedMs)
      const [answer] = (await nextEvent(socket, 'data')) as [Buffer]
      t.match(answer.toString(), /^HTTP\/1\.1 200 /)
    }
    t.equal(upstream.requests.length, 2)
    t.equal(await readAll(socket), '', 'the connection ends once it is idle')
  })
}

for (const afterMs of [0, 100]) {
  await test(`a response that arrives ${afterMs} ms after a standstill reaches the browser, although its connection was idle for too long`, async (t) => {
    const { connection, upstream, cookie, server } = await startWorld(t, API)
    server.app.server.server.timeout = 300
    upstream.answer = (_request, socket) => {
      const write = (): void => void socket.write(ok('{}'))
      if (afterMs === 0) write()
      block(800)
      if (afterMs > 0) setTimeout(write, afterMs)
    }
    const socket = await connection()
    socket.write(`${post(cookie, 2)}{}`)
    const [answer] = (await nextEvent(socket, 'data')) as [Buffer]
    t.match(answer.toString(), /^HTTP\/1\.1 200 /)
  })
}

await test('a first request that arrives while the process stands still, just after its server closed, is answered', async (t) => {
  const { connection, server } = await startWorld(t, API)
  const socket = await connection()
  const closed = server.close()
  await delay(200)
  await turn()
  socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
  block(1200)
  const [answer] = (await nextEvent(socket, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1\.1 503 /)
  await closed
})
