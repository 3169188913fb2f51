import type { Socket } from 'node:net'
import { test } from 'tap'
import { gone, ok } from '../support/upstream/raw-upstream.ts'
import { failureCount } from '../support/telemetry/lines.ts'
import { nextEvent, until, within } from '../support/time/until.ts'
import { freePort } from '../../sandbox/listening.ts'
import { startWorld, API } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'
const TOKEN = 'a-token-in-the-answer'

/** A fault, and the status and code that it must cause: 502 and upstream_lost, unless said otherwise. */
type Fault = {
  readonly sends: (socket: Socket) => void
  readonly status?: number
  readonly code?: string
  /** Whether a GET is repeated: the connection failed before the first byte of a response. */
  readonly repeated?: true
}

const write = (text: string) => (socket: Socket) => void socket.write(text, 'latin1')
const end = (text: string) => (socket: Socket) => void socket.end(text, 'latin1')

const FAULTS: Record<string, Fault> = {
  'reset before any answer': { sends: (socket) => socket.resetAndDestroy(), repeated: true },
  'closed before any answer': { sends: (socket) => socket.end(), repeated: true },
  'closed in the middle of the head': { sends: end('HTTP/1.1 200 O') },
  'reset after half the head': {
    sends: (socket) => socket.write('HTTP/1.1 200 OK\r\nA: b\r\n', () => setImmediate(() => socket.resetAndDestroy())),
  },
  'no HTTP': { sends: write('SSH-2.0-OpenSSH_9.2\r\n\r\n') },
  'HTTP/0.9': { sends: end('<html>hello') },
  'a head of 40 KB': { sends: write(`HTTP/1.1 200 OK\r\nA: ${'a'.repeat(4e4)}\r\n`) },
  'headers without end': {
    sends: (socket) => {
      const more = (): void => void (socket.writable && socket.write(`A: ${'a'.repeat(9e3)}\r\n`, more))
      socket.write('HTTP/1.1 200 OK\r\n', more)
    },
  },
  '1xx without end': { sends: write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(20)) },
  '100 without end': { sends: write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(20)) },
  'an unasked 101': { sends: write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n') },
  'two lengths': { sends: write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}') },
  'length and chunks': {
    sends: write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
  },
  redirect: {
    sends: write('HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\nContent-Length: 0\r\n\r\n'),
    code: 'upstream_error',
  },
  'redirect of any method': {
    sends: write('HTTP/1.1 307 T\r\nLocation: /trading/v1/options/accounts\r\nContent-Length: 0\r\n\r\n'),
    code: 'upstream_error',
  },
  'a status that HTTP does not know': {
    sends: write('HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n'),
    code: 'upstream_error',
  },
}
for (const status of [500, 501, 502, 503, 504, 599]) {
  FAULTS[`${status} with a token`] = {
    sends: write(
      `HTTP/1.1 ${status} Oh\r\nContent-Type: text/html\r\nRetry-After: 7\r\nSet-Cookie: t=${TOKEN}\r\nETag: ${TOKEN}\r\nContent-Length: ${TOKEN.length}\r\n\r\n${TOKEN}`,
    ),
    status,
    code: 'upstream_error',
  }
}

await test('a fault of upstream becomes a problem, and only a GET is repeated, once', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  for (const [name, { sends, status = 502, code = 'upstream_lost', repeated = false }] of Object.entries(FAULTS)) {
    for (const method of ['GET', 'POST', 'PATCH']) {
      const path = method === 'PATCH' ? '/api/payment-agents/v1/clients/me' : ACCOUNTS
      upstream.reset()
      upstream.answer = (_request, socket) => sends(socket)
      const response = await call(method, path, method === 'GET' ? {} : { body: '{}' })
      const title = `${name}: ${method}`
      t.equal(response.status, status, title)
      t.equal(response.headers['content-type'], 'application/problem+json')
      t.equal(response.headers['cache-control'], 'no-store')
      t.match(response.json, {
        code,
        status,
        type: `/problems/${code}`,
        request_id: response.headers['x-request-id'],
      })
      t.equal(response.json['outcome'], method === 'GET' ? undefined : 'unknown', `${title}: outcome`)
      t.equal(upstream.requests.length, method === 'GET' && repeated ? 2 : 1, `${title}: requests upstream`)
      const all = JSON.stringify(response.headers) + response.text
      t.notMatch(all, TOKEN)
      t.notMatch(all, /evil\.example|127\.0\.0\.1|ECONN|socket|undici|\.ts|stack/i)
      if (name.includes('token')) t.equal(response.headers['retry-after'], '7')
    }
  }
})

await test('an upstream that sends informational responses alone is too slow, also where each comes in time', async (t) => {
  const { call, upstream } = await startWorld(t, { ...API, settings: { UPSTREAM_HEADERS_SECONDS: '1' } })
  upstream.answer = (_request, socket) => {
    const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 600)
    socket.on('close', () => clearInterval(timer)).on('error', () => undefined)
  }
  const { status, json } = await call('POST', ACCOUNTS, { body: '{}' })
  t.match([status, json['code'], json['outcome']], [504, 'upstream_timeout', 'unknown'])
  t.ok(upstream.requests.length === 1)
})

await test('a repeated GET gets the response, also after a 103', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  upstream.answer = (_request, socket) => {
    if (upstream.requests.length === 1) socket.resetAndDestroy()
    else socket.write(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${ok('{"n":2}')}`)
  }
  const response = await call('GET', `${ACCOUNTS}?a=1`)
  t.equal(response.status, 200)
  t.equal(response.text, '{"n":2}')
  t.equal(response.headers['link'], undefined)
  t.same(
    upstream.requests.map(({ target }) => target),
    ['/trading/v1/options/accounts?a=1', '/trading/v1/options/accounts?a=1'],
  )
})

await test('a response that upstream cuts off is cut off for the browser too', async (t) => {
  const { call, upstream, server } = await startWorld(t, API)
  const cuts: Record<string, (socket: Socket) => void> = {
    'half a body': end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello'),
    'reset in the middle': (socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello', () =>
        setImmediate(() => socket.resetAndDestroy()),
      ),
    'chunks without end': end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'),
    'a bad chunk': write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n'),
  }
  for (const [name, sends] of Object.entries(cuts)) {
    for (const method of ['GET', 'POST']) {
      upstream.reset()
      upstream.answer = (_request, socket) => sends(socket)
      await t.rejects(call(method, ACCOUNTS), { code: 'ECONNRESET' }, `${name}: ${method}`)
      t.equal(upstream.requests.length, 1)
    }
  }
  await server.close()
  t.equal(failureCount(server.log, 'upstream broke off its response'), 8)
})

await test('with HTTP/1.0, where the end of a connection ends a response, one that is cut off ends with a reset', async (t) => {
  const { connection, cookie, upstream } = await startWorld(t, {
    ...API,
    settings: { IDEMPOTENCY_MAX_ANSWER_BYTES: '2' },
  })
  upstream.answer = (_request, socket) =>
    end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')(socket)
  for (const start of ['GET', 'POST', 'POST with a key']) {
    const socket = await connection()
    const [method] = start.split(' ')
    const key = start.endsWith('key') ? 'Idempotency-Key: k\r\n' : ''
    const closed = new Promise((resolve) => void socket.once('close', resolve))
    socket.resume().write(`${method} ${ACCOUNTS} HTTP/1.0\r\nHost: a\r\nX-CSRF: 1\r\nCookie: ${cookie}\r\n${key}\r\n`)
    t.equal(await within(closed, 'the connection is closed'), true, `${start}: there was an error`)
  }
})

await test('a response that breaks off before its body begins causes upstream_lost, and is not repeated', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  for (const head of ['Content-Length: 10', 'Transfer-Encoding: chunked', 'Retry-After: 9\r\nContent-Length: 10']) {
    for (const method of ['GET', 'POST']) {
      upstream.reset()
      upstream.answer = (_request, socket) => void socket.end(`HTTP/1.1 200 OK\r\nETag: "x"\r\n${head}\r\n\r\n`)
      const { status, headers, json } = await call(method, ACCOUNTS)
      t.equal(status, 502)
      t.match(json, { code: 'upstream_lost', outcome: method === 'GET' ? undefined : 'unknown' })
      t.match(headers, { etag: undefined, 'retry-after': undefined })
      t.equal(upstream.requests.length, 1)
    }
  }
})

await test('unexpected bytes of upstream reach no browser', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const stray = ok('{"of":"another user"}')
  upstream.answer = (_request, socket) => void socket.write(ok('{"mine":1}') + stray)
  t.equal((await call('GET', ACCOUNTS)).text, '{"mine":1}')
  const [first] = upstream.open
  await gone(first)
  upstream.answer = (_request, socket) => void socket.write(ok('{"mine":2}'))
  t.equal((await call('GET', ACCOUNTS)).text, '{"mine":2}', 'the bytes came in the same packet')

  // The bytes arrive on an idle connection.
  const [idle] = upstream.open
  idle?.write(stray)
  await gone(idle)
  t.equal((await call('POST', ACCOUNTS, { body: '{}' })).text, '{"mine":2}', 'the bytes came on an idle connection')

  // The bytes arrive together with the next request.
  for (let round = 0; round < 20; round++) {
    const [socket] = upstream.open
    socket?.write(stray)
    const response = await call('GET', ACCOUNTS)
    t.equal(response.text, '{"mine":2}', 'the bytes came with the request')
  }
})

await test('an upstream that cannot be reached causes upstream_unreachable without an outcome', async (t) => {
  const { call } = await startWorld(t, { ...API, settings: { API_URL: `http://127.0.0.1:${await freePort()}` } })
  for (const method of ['GET', 'POST']) {
    const response = await call(method, ACCOUNTS, method === 'GET' ? {} : { body: '{"a":1}' })
    t.equal(response.status, 502)
    t.equal(response.json['code'], 'upstream_unreachable')
    t.equal(response.json['outcome'], undefined, 'no byte was sent, so the order was not executed')
  }
})

await test('an upstream that does not respond causes upstream_timeout, for an order with outcome unknown', async (t) => {
  const { call, upstream } = await startWorld(t, { ...API, settings: { UPSTREAM_HEADERS_SECONDS: '1' } })
  upstream.answer = () => undefined
  const responses = await Promise.all([
    call('GET', ACCOUNTS),
    call('POST', ACCOUNTS, { body: '{}' }),
    call('GET', '/api/v1/health'),
  ])
  for (const [index, response] of responses.entries()) {
    t.equal(response.status, 504)
    t.equal(response.json['code'], 'upstream_timeout')
    t.equal(response.json['outcome'], index === 1 ? 'unknown' : undefined)
  }
  t.equal(upstream.requests.length, 3, 'no call is repeated')
})

await test('a response body that stalls for UPSTREAM_BODY_SECONDS is cut off', async (t) => {
  const { call, upstream } = await startWorld(t, { ...API, settings: { UPSTREAM_BODY_SECONDS: '1' } })
  upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello')
  await t.rejects(call('GET', ACCOUNTS), { code: 'ECONNRESET' })
})

/** A response that comes byte by byte, without end. */
const trickle =
  (status: string) =>
  (_request: unknown, socket: Socket): void => {
    socket.write(`HTTP/1.1 ${status}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n`)
    const timer = setInterval(() => socket.write('1\r\nx\r\n'), 100)
    socket.on('close', () => clearInterval(timer))
  }

await test('a response that nobody gets may not go on for ever, byte by byte', async (t) => {
  const { call, connection, cookie, upstream, server } = await startWorld(t, {
    ...API,
    settings: { UPSTREAM_BODY_SECONDS: '1' },
  })
  upstream.answer = trickle('500 Failed')
  const calls = [call('GET', ACCOUNTS), call('POST', ACCOUNTS, { body: '{}' })]
  const keyed = call('POST', ACCOUNTS, { body: '{}', headers: { 'idempotency-key': 'a' } })
  for (const { status } of await Promise.all([...calls, keyed])) t.equal(status, 500)
  upstream.answer = trickle('200 OK')
  const browser = await connection()
  const asked = upstream.next()
  browser.write(`POST ${ACCOUNTS} HTTP/1.1\r\nHost: a\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\nContent-Length: 2\r\n\r\n{}`)
  await asked
  await nextEvent(browser, 'data')
  browser.destroy()
  await until(() => upstream.open.size === 0, 'upstream has its connections back')
  const left = (): Record<string, unknown> | undefined => server.log.find(({ audit }) => audit === 'browser_left')
  await until(() => left() !== undefined, 'the outcome of the call is logged')
  t.match(left(), { sent: 'whole', status: 200, cause: { message: 'the discarded response is not complete in time' } })
})
