import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { nextEvent } from '../support/time/until.ts'
import { API, startWorld } from '../support/world.ts'

const ACCOUNTS = '/api/trading/v1/options/accounts'

/** Blocks this thread, with the server. What has been written has arrived. After a {@link turn}, timers are what runs next. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const post = (cookie: string, bytes: number): string =>
  `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\nContent-Length: ${bytes}\r\n\r\n`

await test('a process that stands still again and again judges slow requests all the same', async (t) => {
  const { server } = await startWorld(t, API)
  const { server: http } = server.app.server
  const limit = http.headersTimeout
  t.ok(limit > 0)
  await turn()
  block(600)
  // No turn of the event loop ends in between, so what has arrived is still unread.
  const looks = Array.from({ length: 6 }, () => http.headersTimeout)
  t.same(looks, [0, 0, 0, 0, limit, 0])
})

await test('a request that becomes complete while the process stands still is answered, although its time is over', async (t) => {
  const { connection, cookie, server } = await startWorld(t, API)
  const whole = `${post(cookie, 2)}{}`
  for (const cut of [20, whole.length - 1]) {
    const socket = await connection()
    socket.write(whole.slice(0, cut))
    await delay(100)
    Object.assign(server.app.server.server, { headersTimeout: 300, requestTimeout: 300 })
    await turn()
    socket.write(whole.slice(cut))
    // Node looks at the time of requests once a second.
    block(1200)
    const [answer] = (await nextEvent(socket, 'data')) as [Buffer]
    t.match(answer.toString(), /^HTTP\/1\.1 200 /)
    socket.destroy()
  }
})

await test('a large upload whose rest arrives while the process stands still does not count as too slow', async (t) => {
  const { connection, upstream, cookie } = await startWorld(t, API)
  const socket = await connection()
  socket.write(`${post(cookie, 90_000)}${'x'.repeat(70_000)}`)
  await delay(200)
  await turn()
  socket.write('x'.repeat(20_000))
  // Uploads are judged every five seconds.
  block(5200)
  const [answer] = (await nextEvent(socket, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1\.1 200 /)
  t.equal(upstream.requests.at(-1)?.body.length, 90_000)
})
