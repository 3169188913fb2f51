import type { Socket } from 'node:net'
import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { readAll, startWorld, type World, API } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'
/** More than the server buffers before it sends a body on. */
const LARGE = 'x'.repeat(70_000)

/** The headers of a POST. */
const post = (cookie: string, length: number | 'chunked'): string =>
  `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n${
    length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
  }\r\n\r\n`

async function startUpload({ connection }: World<'raw'>, bytes: string): Promise<Socket> {
  const socket = await connection()
  socket.write(bytes)
  return socket
}

await test('a small body is sent upstream once it is complete, even if it arrives byte by byte', async (t) => {
  const api = await startWorld(t, API)
  const { cookie, upstream, call } = api
  for (const [framing, bytes] of [
    ['length', '{"amount":1}'],
    ['chunked', 'c\r\n{"amount":1}\r\n0\r\n\r\n'],
  ] as const) {
    upstream.reset()
    let heads = 0
    upstream.onHead = () => heads++
    const socket = await startUpload(api, post(cookie, framing === 'length' ? bytes.length : 'chunked'))
    for (const byte of bytes.slice(0, -1)) await new Promise((resolve) => void socket.write(byte, resolve))
    // A round trip of another request, after which the first would have arrived.
    t.equal((await call('GET', ACCOUNTS)).status, 200)
    t.equal(heads, 1, `${framing}: half a body is not sent`)
    socket.write(bytes.slice(-1))
    await until(() => upstream.requests.length === 2)
    t.match(upstream.requests[1], { method: 'POST', body: '{"amount":1}' })
    t.equal(upstream.header('content-length'), '12', 'the length is announced')
    socket.destroy()
  }
})

await test('uploads that are never finished do not block the API for other sessions', async (t) => {
  const api = await startWorld(t, API)
  const { server, upstream, call } = api
  const url = new URL(server.url)
  for (let user = 0; user < 6; user++) {
    const browser = new JarBrowser()
    await logIn(browser, url.href.slice(0, -1), `user-${user}@example.test`)
    const cookie = browser.cookieHeader(url, url)
    await Promise.all(Array.from({ length: 90 }, () => startUpload(api, `${post(cookie, 1000)}{`)))
  }
  for (let count = 0; count < 10; count++) t.equal((await call('GET', ACCOUNTS)).status, 200)
  t.equal((await call('POST', ACCOUNTS, { body: '{}' })).status, 200)
  t.equal(upstream.requests.length, 11, 'upstream receives no other request')
})

await test('a session may have only a few large uploads at a time', async (t) => {
  const api = await startWorld(t, API)
  const { cookie, upstream, call } = api
  let heads = 0
  upstream.onHead = () => heads++
  const uploads = []
  for (let count = 0; count < 4; count++) uploads.push(await startUpload(api, post(cookie, 80_000) + LARGE))
  await until(() => heads === 4)
  const refused = await call('POST', ACCOUNTS, { body: LARGE })
  t.match([refused.status, refused.json['code']], [429, 'rate_limited'])
  t.equal((await call('POST', ACCOUNTS, { body: '{}' })).status, 200, 'small uploads do not count')
  uploads[0]?.write('x'.repeat(10_000))
  await nextEvent(uploads[0] as Socket, 'data')
  t.equal((await call('POST', ACCOUNTS, { body: LARGE })).status, 200)
})

await test('a large upload that hardly moves gets 408, but not one that waits for upstream', async (t) => {
  const api = await startWorld(t, { ...API, settings: { MAX_BODY_BYTES: '100000000' } })
  const { cookie, upstream } = api
  const slow = await startUpload(api, post(cookie, 80_000) + LARGE)
  const drip = setInterval(() => slow.write('x'), 100)
  t.teardown(() => clearInterval(drip))
  const response = readAll(slow)

  let paused: Socket | undefined
  upstream.onHead = (head, socket) => {
    if (!head.includes('content-length: 50000000')) return
    paused = socket
    socket.pause()
  }
  const patient = await startUpload(api, post(cookie, 50_000_000))
  const blocks = async (): Promise<void> => {
    for (let sent = 0; sent < 50; sent++)
      await new Promise((resolve) => void patient.write('y'.repeat(1_000_000), resolve))
  }
  const sending = blocks()
  t.match(await response, /^HTTP\/1\.1 408 [^]*connection: close[^]*too slowly/i)
  t.notOk(patient.destroyed)
  upstream.answer = (_request, socket) => void socket.write(ok())
  paused?.resume()
  await sending
  t.match(String((await nextEvent(patient, 'data'))[0]), /^HTTP\/1\.1 200 /)
})

await test('an upload of a session that ends meanwhile is not sent upstream', async (t) => {
  const api = await startWorld(t, { ...API, redis: true })
  const { cookie, upstream, send } = api
  const headers = { cookie, 'x-csrf': '1' }
  const uploads = [
    await startUpload(api, `${post(cookie, 12)}{"amount":1`),
    await startUpload(api, `${post(cookie, 'chunked')}b\r\n{"amount":1\r\n`),
  ]
  t.equal((await send('POST', '/auth/logout', { headers })).status, 204)
  for (const [index, socket] of uploads.entries()) {
    socket.write(index === 0 ? '}' : '1\r\n}\r\n0\r\n\r\n')
    t.match(String((await nextEvent(socket, 'data'))[0]), /^HTTP\/1\.1 401 [^]*session_expired/)
  }
  t.same(upstream.requests, [])
})

await test('an upload that has begun to reach upstream when its session ends does not reach it whole', async (t) => {
  const api = await startWorld(t, { ...API, redis: true })
  const { cookie, upstream, send } = api
  let heads = 0
  upstream.onHead = () => heads++
  const uploads = [
    await startUpload(api, post(cookie, LARGE.length + 1) + LARGE),
    await startUpload(api, `${post(cookie, 'chunked')}${LARGE.length.toString(16)}\r\n${LARGE}\r\n`),
  ]
  await until(() => heads === 2, 'both have begun')
  t.equal((await send('POST', '/auth/logout', { headers: { cookie, 'x-csrf': '1' } })).status, 204)
  for (const [index, socket] of uploads.entries()) {
    socket.write(index === 0 ? 'x' : '0\r\n\r\n')
    t.match(String((await nextEvent(socket, 'data'))[0]), /^HTTP\/1\.1 401 [^]*session_expired/)
  }
  t.same(upstream.requests, [])
})

await test('a request body with a Content-Encoding is refused, because that header does not pass upstream', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  for (const coding of ['gzip', 'br', 'x, y', '']) {
    const headers = { 'content-encoding': coding }
    const response = await call('POST', ACCOUNTS, { body: '{}', headers })
    t.match([response.status, response.json['code']], [415, 'unsupported_media_type'], coding)
    t.equal(response.headers['accept-encoding'], 'identity')
  }
  t.same(upstream.requests, [])
  const headers = { 'content-encoding': 'identity' }
  t.equal((await call('POST', ACCOUNTS, { body: '{}', headers })).status, 200)
})
