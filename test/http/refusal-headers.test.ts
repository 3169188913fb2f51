import { test } from 'tap'
import { ACCOUNTS } from './malformed.ts'
import { API, startWorld } from '../support/world.ts'

await test('a 401 of this server has a challenge that no browser asks the user about, and that of upstream stays as it is', async (t) => {
  const { send, upstream } = await startWorld(t, API)
  for (const [method, path] of [
    ['GET', ACCOUNTS],
    ['POST', '/auth/session'],
    ['GET', '/auth/sessions'],
  ] as const) {
    for (const cookie of ['', 'session=none']) {
      const { status, headers } = await send(method, path, { headers: { 'x-csrf': '1', cookie } })
      t.match({ status, headers }, { status: 401, headers: { 'www-authenticate': 'Session' } }, `${method} ${path}`)
    }
  }
  t.same(upstream.requests, [])
  upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}')
  const { status, headers } = await send('GET', '/api/v1/health', { headers: { 'x-csrf': '1' } })
  t.equal(status, 401)
  t.equal(headers['www-authenticate'], undefined)
})

await test('what the parser of HTTP refuses has a Date', async (t) => {
  const { raw } = await startWorld(t, API)
  for (const [status, bytes] of [
    [400, 'BREW / HTTP/1.1\r\nHost: h\r\n\r\n'],
    [505, 'GET / HTTP/2\r\nHost: h\r\n\r\n'],
    [431, `GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
  ] as const) {
    const response = await raw(bytes)
    t.match(response, new RegExp(`^HTTP/1.1 ${status} `))
    const [, date = ''] = /\r\ndate: (\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT)\r\n/i.exec(response) ?? []
    t.ok(Math.abs(Date.parse(date) - Date.now()) < 60_000, date)
  }
})

await test('headers that are too large: a person reads to delete the cookies of this site, on a page', async (t) => {
  const { raw } = await startWorld(t, API)
  const head = 'GET /?a=text/html HTTP/1.1\r\nHost: h\r\n'
  const cookie = `Cookie: a=${'x'.repeat(20_000)}\r\n\r\n`
  const document = await raw(`${head}Accept: */*\r\n${cookie}`)
  t.match(
    document,
    /^HTTP\/1\.1 431 [^]*content-type: application\/problem\+json[^]*"detail":"[^"]*[Dd]elete the cookies/i,
  )
  const page = await raw(`${head}Accept: text/html,application/xhtml+xml\r\n${cookie}`)
  t.match(page, /^HTTP\/1\.1 431 [^]*content-type: text\/html; charset=utf-8\r\n[^]*<main>[^]*[Dd]elete the cookies/i)
  t.match(page, /\r\ncontent-security-policy: default-src 'none'; style-src 'sha256-/i)
  t.match(page, /\r\ncache-control: no-store\r\n/i)
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(page)?.[1])
  t.equal(Buffer.byteLength(page.slice(page.indexOf('\r\n\r\n') + 4)), length)
  t.equal(page.split('HTTP/1.1 ').length, 2, 'one response')
})
