import { channel } from 'node:diagnostics_channel'
import { writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { awakeClock } from '../support/time/awake-clock.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { proxyProcess } from '../support/proxies/process.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { testCa, trust } from '../support/redis/tls.ts'
import { failureCount } from '../support/telemetry/lines.ts'
import { TRADING, sendTo, ACCOUNTS } from '../support/user.ts'
import { startWorld, API } from '../support/world.ts'
const UNFRAMED = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhalf of it'

await test('a response without a length is complete when upstream closes, and cut off when it resets', async (t) => {
  const { call, upstream, server } = await startWorld(t, API)
  for (const method of ['GET', 'POST']) {
    upstream.answer = (_request, socket) => void socket.end(UNFRAMED)
    t.equal((await call(method, ACCOUNTS)).text, 'half of it', method)
    upstream.answer = (_request, socket) =>
      void socket.write(UNFRAMED, () => setTimeout(() => socket.resetAndDestroy(), 20))
    await t.rejects(call(method, ACCOUNTS), { message: /aborted|hang up/ }, 'the browser cannot take it for whole')
  }
  const broken = server.log.filter(({ msg }) => msg === 'upstream broke off its response')
  t.same(
    broken.map(({ method }) => method),
    ['GET', 'POST'],
  )
})

await test('a connection that has been idle for longer than upstream keeps it is not reused', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const connectionOf = async (method: string, keepAlive = ''): Promise<number> => {
    upstream.answer = (_request, socket) => void socket.write(ok('{}', keepAlive))
    t.equal((await call(method, ACCOUNTS)).status, 200)
    return upstream.requests.at(-1)?.connection ?? 0
  }
  const get = await connectionOf('GET')
  const post = await connectionOf('POST')
  t.equal(await connectionOf('GET'), get)
  t.equal(await connectionOf('POST', 'Keep-Alive: timeout=60\r\n'), post)
  t.not(get, post, 'a GET does not use the connection of an order')
  await delay(1200)
  t.equal(await connectionOf('GET', 'Keep-Alive: timeout=3\r\n'), get)
  const next = await connectionOf('POST')
  t.not(next, post, 'an order uses a new connection rather than an old one')
  await delay(1200)
  t.not(await connectionOf('GET'), get, 'the server keeps a margin to the keep-alive timeout of upstream')
})

await test('no order is lost when upstream closes idle connections silently', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const idleMs = 1000
  const timers = new Map<Socket, NodeJS.Timeout>()
  // While this process stands still, so does the server, which cannot know yet for how long it was.
  const clock = awakeClock(t)
  upstream.answer = (_request, socket) => {
    clearTimeout(timers.get(socket))
    socket.write(ok())
    const idleSince = clock()
    const closeIfIdle = (): void => {
      const leftMs = idleSince + idleMs - clock()
      if (leftMs > 0) timers.set(socket, setTimeout(closeIfIdle, leftMs))
      else socket.resetAndDestroy()
    }
    closeIfIdle()
  }
  const orders = async (offsetMs: number): Promise<number[]> => {
    const statuses = []
    for (let count = 0; count < 4; count++) {
      statuses.push((await call('POST', ACCOUNTS, { body: '{}' })).status)
      await delay(idleMs + offsetMs)
    }
    return statuses
  }
  const offsets = Array.from({ length: 40 }, (_, index) => index / 8 - 4)
  t.same(new Set((await Promise.all(offsets.map(orders))).flat()), new Set([200]))
})

await test('a TLS alert on a connection that has been used does not mean that an order was not read', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const sockets: Socket[] = []
  const keep = (opened: unknown): void => void sockets.push((opened as { socket: Socket }).socket)
  const opened = channel('net.client.socket')
  opened.subscribe(keep)
  t.teardown(() => opened.unsubscribe(keep))
  upstream.answer = ({ body }, socket) => {
    if (body === 'answered') return void socket.write(ok())
    const mine = sockets.find(({ localPort }) => localPort === socket.remotePort)
    mine?.destroy(Object.assign(new Error('alert'), { code: 'ERR_SSL_TLSV1_ALERT_ACCESS_DENIED' }))
  }
  t.match((await call('POST', ACCOUNTS, { body: 'refused' })).json, {
    code: 'upstream_unreachable',
    outcome: undefined,
  })
  t.equal((await call('POST', ACCOUNTS, { body: 'answered' })).status, 200)
  t.match((await call('POST', ACCOUNTS, { body: 'read' })).json, { code: 'upstream_lost', outcome: 'unknown' })
  t.same(
    upstream.requests.map(({ connection }) => connection),
    [1, 2, 2],
  )
})

await test('an upstream that demands a client certificate gets no request, and the log names the reason', async (t) => {
  const ca = await testCa(t)
  await trust(t, ca)
  const dir = t.testdir({})
  const port = await freePort()
  const config = join(dir, 'haproxy.cfg')
  await writeFile(
    config,
    `defaults
  mode http
  timeout connect 1s
  timeout client 5s
  timeout server 5s
frontend tls
  bind 127.0.0.1:${port} ssl crt ${ca.pemFile} ca-file ${ca.caFile} verify required
  http-request return status 200
`,
  )
  await proxyProcess(t, 'haproxy', ['-db', '-f', config], { port, log: join(dir, 'log') })
  const settings = { API_URL: `https://localhost:${port}`, WS_URL: `wss://localhost:${port}` }
  const { server, browser } = await startWorld(t, { user: 'demo', settings })
  const url = new URL(server.url)
  const cookie = browser.cookieHeader(url, url)
  for (const method of ['GET', 'POST']) {
    const init = { headers: { cookie, 'x-csrf': '1' }, ...(method === 'POST' && { body: '{}' }) }
    const { status, json } = await sendTo(server.port, method, ACCOUNTS, init)
    t.match([status, json['code']], [502, 'upstream_unreachable'], method)
    t.notOk('outcome' in json, 'the order was not executed')
  }
  for (const path of [TRADING, '/ws/public']) {
    const line = new BrowserSocket(`ws://127.0.0.1:${server.port}${path}`, { origin: server.url, cookie })
    t.same(await line.closed, { code: 1013, reason: 'upstream_unreachable' }, path)
  }
  const why = /CERTIFICATE_REQUIRED/
  await server.close()
  const logged = server.log.filter(({ level }) => Number(level) >= 40)
  const kinds = ['request failed', 'upstream refused a socket', 'no one-time URL for a relay']
  t.same(
    kinds.map((msg) => failureCount(logged, msg)),
    [2, 1, 1],
  )
  for (const line of logged) t.match(JSON.stringify(line), why)
})
