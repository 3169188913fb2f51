import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { ACCOUNTS, framing, HOSTS, TARGETS } from './malformed.ts'
import { nextEvent, within } from '../support/time/until.ts'
import { startWorld, API } from '../support/world.ts'

/** Fastify runs no hooks for a request whose path it cannot decode. What is malformed besides counts all the same. */
const PATHS = [ACCOUNTS, '/%zz']

await test('a request that parsers read differently gets 400 or 404, and does not reach upstream', async (t) => {
  const { raw, upstream, cookie } = await startWorld(t, API)
  const head = `Cookie: ${cookie}\r\nX-CSRF: 1\r\nConnection: close\r\n`
  const get = (target: string) => `GET ${target} HTTP/1.1\r\nHost: bff.example\r\n${head}\r\n`

  await t.test('the same request is served when it is well formed', async (t) => {
    t.match(await raw(get(ACCOUNTS)), /^HTTP\/1\.1 200 OK/)
    t.match(await raw(get(ACCOUNTS).replace('HTTP/1.1', 'HTTP/1.0')), /^HTTP\/1\.1 200 OK/)
    t.equal(upstream.requests.length, 2)
    upstream.reset()
  })

  for (const [name, target] of Object.entries(TARGETS)) {
    const response = await raw(get(target))
    t.match(response, /^HTTP\/1\.1 40[04] /, name)
    t.match(response, /\r\nx-content-type-options: nosniff\r\n/i, `${name}: nosniff`)
    t.match(response, /\r\ncross-origin-resource-policy: same-origin\r\n/i, `${name}: CORP`)
    t.match(response, /\r\nx-request-id: [0-9a-f-]{36}\r\n/i, `${name}: request id`)
    t.match(response, /"code":"(bad_request|not_found)"/, `${name}: a problem`)
  }

  for (const [name, lines] of Object.entries(HOSTS)) {
    for (const version of ['1.1', '1.0']) {
      for (const path of PATHS) {
        const what = `${name}, ${path} HTTP/${version}`
        const request = `GET ${path} HTTP/${version}\r\n${lines}Connection: keep-alive\r\n\r\n`
        const response = await raw(request + get(ACCOUNTS))
        // The plain health check of a balancer: the response names the missing header.
        const isPlain = name === 'no Host' && version === '1.0'
        t.match(response, isPlain ? /^HTTP\/1\.1 426 / : /^HTTP\/1\.1 400 /, what)
        t.equal(response.match(/^HTTP\/1\.1 /gm)?.length, 1, `${what}: one response, then the connection ends`)
        t.match(
          response,
          isPlain ? /upgrade: HTTP\/1\.1[^]*Host header[^]*\/readyz[^]*"upgrade_required"/i : /"bad_request"/,
          what,
        )
      }
    }
  }
  t.same(upstream.requests, [], 'no request reaches upstream')
})

await test('framing that parsers read differently is refused, and smuggles no request', async (t) => {
  const { raw, upstream, cookie } = await startWorld(t, API)
  const smuggled = 'GET /api/v1/health HTTP/1.1\r\nHost: h\r\nX-CSRF: 1\r\n\r\n'
  const postTo = (path: string) => (lines: string, body: string) =>
    `POST ${path} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n${lines}\r\n${body}`
  for (const path of PATHS) {
    for (const [name, bytes] of Object.entries(framing(postTo(path), smuggled))) {
      const response = await raw(bytes)
      t.match(response, /^HTTP\/1\.1 4(00|31) /, `${path}, ${name}`)
      t.equal(response.split('HTTP/1.1 ').length, 2, `${path}, ${name}: one response, then the connection ends`)
    }
  }
  const post = postTo(ACCOUNTS)
  t.same(upstream.requests, [], 'no whole request reaches upstream')
  upstream.reset()

  await t.test('chunk extensions and trailers are dropped', async (t) => {
    const body = '3;name=value\r\nabc\r\n1;x\r\nd\r\n0\r\nX-Trailer: 1\r\nAuthorization: Bearer mine\r\n\r\n'
    const response = await raw(post('Transfer-Encoding: chunked\r\nConnection: close\r\n', body))
    t.match(response, /^HTTP\/1\.1 200 /)
    t.equal(upstream.requests[0]?.body, 'abcd')
    t.notMatch(upstream.received.join(''), /trailer|mine|name=value/i)
  })

  await t.test('bytes after an order that may be executed cause no response in its place', async (t) => {
    upstream.reset()
    upstream.answer = () => undefined
    t.equal(
      await raw(`${post('Content-Length: 2\r\n', '{}')}RUBBISH\r\n\r\n`),
      '',
      'the connection is cut without a response',
    )
    t.equal(upstream.requests.length, 1)
    // The request is allowed to finish, so the test ends it; otherwise the server would wait for it.
    for (const socket of upstream.open) socket.destroy()
  })
})

await test('after an upgrade that is ignored no other request is read, since what follows an upgrade may be another protocol', async (t) => {
  const { connection } = await startWorld(t, API)
  for (const method of ['GET', 'POST']) {
    const socket = await connection()
    const closed = text(socket)
    const session = '/auth/session HTTP/1.1\r\nHost: h\r\nX-CSRF: 1\r\nContent-Length: 0\r\n'
    socket.write(`${method} ${session}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`)
    await nextEvent(socket, 'readable')
    socket.write(`GET ${session}\r\n`)
    const response = await within(closed, 'the connection ends')
    t.match(response, /^HTTP\/1\.1 (200|401) [^]*\r\nconnection: close\r\n/i)
    t.equal(response.split('HTTP/1.1 ').length, 2, 'it has one response')
  }
})

await test('of any number of headers the last one counts', async (t) => {
  const { raw, upstream, cookie } = await startWorld(t, API)
  const many = 'a:\r\n'.repeat(3000)
  const post = (lines: string) =>
    raw(
      `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\nConnection: close\r\n${many}${lines}\r\n{}`,
    )
  t.match(await post('Content-Length: 2\r\n'), /^HTTP\/1\.1 200 /)
  t.equal(upstream.requests[0]?.body, '{}')
  for (const last of ['Host: evil.example', 'Content-Encoding: gzip', 'Origin: https://evil.example']) {
    t.match(await post(`Content-Length: 2\r\n${last}\r\n`), /^HTTP\/1\.1 4(00|03|15) /, last)
  }
  t.equal(upstream.requests.length, 1)
})
