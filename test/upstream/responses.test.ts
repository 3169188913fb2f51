import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { ok } from '../support/upstream/raw-upstream.ts'
import { startWorld, API } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'

await test('status, headers and body of upstream pass unchanged', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const responses: Record<string, [head: string, body: string, expected: string]> = {
    'more than its length': ['200 OK\r\nContent-Length: 5', 'helloEXTRA', 'hello'],
    'until the connection ends': ['200 OK\r\nConnection: close', 'hello', 'hello'],
    'chunks with extensions and a trailer': [
      '200 OK\r\nTransfer-Encoding: chunked',
      '5;x=y\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n',
      'hello',
    ],
    'no content': ['204 No Content', '', ''],
    created: ['201 Created\r\nContent-Length: 2', '[]', '[]'],
    'not modified': ['304 Not Modified\r\nETag: "x"', '', ''],
    'a 400': ['400 Bad\r\nContent-Length: 2', '{}', '{}'],
    'a 403': ['403 Forbidden\r\nContent-Length: 3', 'no!', 'no!'],
    'a 404 in HTML': ['404 No\r\nContent-Type: text/html\r\nContent-Length: 4', '<b>x', '<b>x'],
    'a 429': ['429 Slow\r\nRetry-After: 3\r\nX-RateLimit-Remaining: 0\r\nContent-Length: 0', '', ''],
  }
  for (const [name, [head, body, expected]] of Object.entries(responses)) {
    upstream.answer = (_request, socket) => {
      socket.write(`HTTP/1.1 ${head}\r\n\r\n${body}`)
      if (head.includes('close')) socket.end()
    }
    const response = await call('GET', ACCOUNTS)
    t.equal(response.status, Number(head.slice(0, 3)), name)
    t.equal(response.text, expected, name)
    t.equal(response.headers['cache-control'], 'no-store')
    t.equal(response.headers['x-trailer'], undefined)
  }
})

await test('a 408 or 421, on which browsers send a call again, passes only where that does no harm', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  for (const status of [408, 421]) {
    upstream.answer = (_request, socket) => socket.write(`HTTP/1.1 ${status} \r\nContent-Length: 2\r\n\r\n{}`)
    t.match(await call('GET', ACCOUNTS), { status, text: '{}' })
    t.match(await call('POST', ACCOUNTS, { body: '{}', headers: { 'idempotency-key': `key-${status}` } }), {
      status,
      text: '{}',
    })
    for (const method of ['POST', 'PATCH']) {
      const path = method === 'PATCH' ? '/api/payment-agents/v1/clients/me' : ACCOUNTS
      const json = { code: 'upstream_error', outcome: 'unknown', detail: new RegExp(`${status}, on which`) }
      t.match(await call(method, path, { body: '{}' }), { status: 502, json }, `${method} ${status}`)
    }
  }
})

await test('only listed response headers pass', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const back = {
    'content-type': 'text/csv; charset=latin1',
    'content-language': 'de',
    'content-disposition': 'attachment; filename="\u00e9.csv"',
    etag: 'W/"1"',
    'last-modified': 'Sat, 21 Nov 2026 00:00:00 GMT',
    'retry-after': '5',
    ratelimit: '"default";r=50;t=30',
    'ratelimit-policy': '"default";q=100;w=60',
    'x-ratelimit-limit': '300',
  }
  const kept = {
    'set-cookie': 'session=evil',
    'cache-control': 'public, max-age=9',
    expires: 'never',
    'access-control-allow-origin': '*',
    'content-security-policy': 'none',
    'strict-transport-security': 'max-age=0',
    'x-request-id': 'theirs',
    'x-content-type-options': 'sniff',
    'clear-site-data': '"*"',
    location: '/elsewhere',
    link: '</x>',
    server: 'secret/1.0',
    via: '1.1 x',
    vary: '*',
    'x-brand': 'y',
    'www-authenticate': 'Bearer',
    'proxy-authenticate': 'Basic',
    upgrade: 'h2c',
    'alt-svc': 'h3=":443"',
    'x-xratelimit': '1',
  }
  const lines = Object.entries({ ...back, ...kept }).map(([name, value]) => `${name}: ${value}\r\n`)
  upstream.answer = (_request, socket) =>
    void socket.write(Buffer.from(`HTTP/1.1 200 OK\r\n${lines.join('')}Content-Length: 2\r\n\r\n{}`, 'latin1'))
  const { headers } = await call('GET', ACCOUNTS)
  t.match(headers, back)
  const own = ['cache-control', 'connection', 'content-length', 'cross-origin-resource-policy', 'date', 'keep-alive']
  const more = ['vary', 'x-content-type-options', 'x-request-id']
  t.strictSame(
    Object.keys(headers)
      .filter((name) => name !== 'keep-alive')
      .sort(),
    [...Object.keys(back), ...own, ...more].filter((name) => name !== 'keep-alive').sort(),
  )
  t.match(headers, { 'cache-control': 'no-store', vary: 'Origin', 'x-content-type-options': 'nosniff' })
  t.match(headers['x-request-id'], /^[0-9a-f-]{36}$/)
})

await test('headers that Connection names go no further, in either direction (RFC 9110 §7.6.1)', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const lines = 'Connection: Keep-Alive, ETag\r\nETag: "a"\r\nContent-Language: de\r\n'
  upstream.answer = (_request, socket) => void socket.write(ok('{}', lines))
  const connection = 'keep-alive, Accept-Language, Idempotency-Key'
  const headers = { connection, 'accept-language': 'de', 'accept-encoding': 'br' }
  for (const [method, key] of [
    ['GET', {}],
    ['POST', { 'idempotency-key': 'a' }],
    ['POST', { 'idempotency-key': 'a' }],
  ] as const) {
    const response = await call(method, ACCOUNTS, {
      headers: { ...headers, ...key },
      ...(method === 'POST' && { body: '{}' }),
    })
    t.equal(response.headers['etag'], undefined)
    t.equal(response.headers['content-language'], 'de')
  }
  t.equal(upstream.requests.length, 2, 'the key counts here, and the second POST is a repetition')
  t.equal(upstream.header('idempotency-key'), undefined)
  t.equal(upstream.header('accept-language'), undefined)
  t.equal(upstream.header('accept-encoding'), 'br')
})

await test('a 204 has no length, as a response and as a repetition (RFC 9110 §8.6)', async (t) => {
  const { raw, cookie, upstream } = await startWorld(t, API)
  upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n')
  const head = `Host: a\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\nConnection: close\r\n`
  const post = `POST ${ACCOUNTS} HTTP/1.1\r\n${head}Idempotency-Key: a\r\nContent-Length: 2\r\n\r\n{}`
  for (const request of [`GET ${ACCOUNTS} HTTP/1.1\r\n${head}\r\n`, post, post]) {
    const response = await raw(request)
    t.match(response, /^HTTP\/1\.1 204 /)
    t.notMatch(response, /content-length/i)
  }
  t.equal(upstream.requests.length, 2)
})

await test('a 205 becomes a 204 without its body, which a 205 must not have (RFC 9110 §15.3.6)', async (t) => {
  const { raw, cookie, upstream } = await startWorld(t, API)
  const reset = 'HTTP/1.1 205 Reset Content\r\nContent-Length: 6\r\n\r\nnobody'
  upstream.answer = ({ target }, socket) => void socket.write(target.includes('next') ? ok('{"next":1}') : reset)
  const head = `Host: a\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n`
  const post = (key: string) => `POST ${ACCOUNTS} HTTP/1.1\r\n${head}${key}Content-Length: 2\r\n\r\n{}`
  const get = (path: string) => `GET ${path} HTTP/1.1\r\n${head}\r\n`
  const keyed = post('Idempotency-Key: a\r\n')
  for (const request of [get(ACCOUNTS), post(''), keyed, keyed, get('/api/v1/health')]) {
    const [, first = '', second = ''] = (await raw(request + get(`${ACCOUNTS}?next`))).split('HTTP/1.1 ')
    t.match(first, /^204 /)
    t.notMatch(first, /content-length|nobody/i)
    t.match(second, /^200 [^]*"next":1/)
  }
})

await test('a 205 is answered at once, whatever becomes of the body that it must not have', async (t) => {
  const { raw, cookie, upstream } = await startWorld(t, API)
  const requests = ['GET', 'POST', 'POST with a key'].map((name) => {
    const key = name.includes('key') ? 'Idempotency-Key: a\r\n' : ''
    const body = name === 'GET' ? '\r\n' : 'Content-Length: 2\r\n\r\n{}'
    return [
      name,
      `${name.slice(0, 4).trim()} ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n${key}${body}`,
    ]
  })
  for (const [name = '', request = ''] of requests) {
    let connection: Socket | undefined
    upstream.answer = (_request, socket) => {
      connection = socket
      socket.write('HTTP/1.1 205 Reset Content\r\nContent-Length: 7\r\n\r\nnobody')
    }
    t.match(await raw(request), /^HTTP\/1\.1 204 /, `${name}: it never ends`)
    connection?.destroy()
    upstream.answer = (_request, socket) =>
      socket.write('HTTP/1.1 205 Reset Content\r\nContent-Length: 7\r\n\r\nnobody', () => socket.resetAndDestroy())
    // A browser would send again what gets no response.
    t.match(await raw(request.replace(': a', ': b')), /^HTTP\/1\.1 204 /, `${name}: it breaks off`)
  }
})

await test('a file name passes byte for byte, in whatever encoding, and wherever the length stands', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const names = { 'ISO 8859-1': Buffer.from('\u00e9', 'latin1'), 'UTF-8': Buffer.from('\u00e9\u2603') }
  for (const [encoding, bytes] of Object.entries(names)) {
    const disposition = `attachment; filename="${bytes.toString('latin1')}.csv"`
    const lines = ['Content-Length: 2', `Content-Disposition: ${disposition}`]
    for (const head of [lines, lines.toReversed()]) {
      upstream.answer = (_request, socket) =>
        void socket.write(Buffer.from(`HTTP/1.1 200 OK\r\n${head.join('\r\n')}\r\n\r\n{}`, 'latin1'))
      const key = { 'idempotency-key': `${encoding} ${head.indexOf('Content-Length: 2')}` }
      const responses = {
        GET: await call('GET', ACCOUNTS),
        POST: await call('POST', ACCOUNTS, { body: '{}' }),
        'POST with a key': await call('POST', ACCOUNTS, { body: '{}', headers: key }),
        'the same key again': await call('POST', ACCOUNTS, { body: '{}', headers: key }),
      }
      for (const [name, { status, headers, text }] of Object.entries(responses)) {
        t.same([status, headers['content-length'], text], [200, '2', '{}'], `${encoding}, ${name}`)
        t.equal(headers['content-disposition'], disposition, `${encoding}, ${name}`)
      }
    }
  }
})

await test('every byte of a response passes, however upstream splits it', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  for (const size of [1, 256, 16_384, 16_385, 200_000]) {
    const body = Buffer.from(Array.from({ length: size }, (_, index) => index % 256))
    for (const pieces of [1, 2, 3]) {
      upstream.answer = (_request, socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
        const step = Math.ceil(size / pieces)
        for (let from = 0; from < size; from += step) {
          setImmediate(() => socket.write(body.subarray(from, from + step)))
        }
      }
      const response = await call('GET', ACCOUNTS)
      t.ok(response.bytes.equals(body), `${size} bytes in ${pieces}`)
    }
  }
})

await test('a compressed response passes without being unpacked', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
  upstream.answer = (_request, socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`)
    socket.write(bomb)
  }
  const before = process.memoryUsage().arrayBuffers
  const response = await call('GET', ACCOUNTS, { headers: { 'accept-encoding': 'gzip' } })
  t.equal(response.headers['content-encoding'], 'gzip')
  t.ok(response.bytes.equals(bomb))
  t.ok(process.memoryUsage().arrayBuffers - before < 16 * 1024 * 1024, 'the server does not unpack it')
  t.equal(upstream.header('accept-encoding'), 'gzip')
})
