import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test } from 'tap'
import { earlyInAMinute } from '../support/time/clock-minute.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'
import { readAll, startWorld, API } from '../support/world.ts'
import { sendTo, ACCOUNTS } from '../support/user.ts'
const APP = 'https://app.example'

type Headers = Record<string, string>

await test('a call to /api or /auth passes only with the right X-CSRF, Origin and Sec-Fetch-Site', async (t) => {
  const { send, cookie, upstream, provider } = await startWorld(t, {
    ...API,
    settings: { FRONTEND_ORIGINS: `${APP},https://other.example` },
  })
  const csrf = { 'x-csrf': '1' }
  const passing: Record<string, Headers> = {
    'no browser': csrf,
    'same origin': { ...csrf, 'sec-fetch-site': 'same-origin' },
    'same origin, origin null': { ...csrf, 'sec-fetch-site': 'same-origin', origin: 'null' },
    'same origin, listed': { ...csrf, 'sec-fetch-site': 'same-origin', origin: APP },
    'same site, listed': { ...csrf, 'sec-fetch-site': 'same-site', origin: APP },
    'cross site, listed': { ...csrf, 'sec-fetch-site': 'cross-site', origin: APP },
    'listed, an old browser': { ...csrf, origin: 'https://other.example' },
  }
  const refused: Record<string, Headers> = {
    'no X-CSRF': {},
    'no X-CSRF, listed': { origin: APP, 'sec-fetch-site': 'same-site' },
    'another X-CSRF': { 'x-csrf': '0' },
    'X-CSRF with more': { 'x-csrf': '1, 1' },
    'foreign origin': { ...csrf, origin: 'https://evil.example' },
    'foreign origin, same site': { ...csrf, origin: 'https://evil.example', 'sec-fetch-site': 'same-site' },
    'foreign origin that claims to be the same': {
      ...csrf,
      origin: 'https://evil.example',
      'sec-fetch-site': 'same-origin',
    },
    'null origin': { ...csrf, origin: 'null' },
    'null origin, cross site': { ...csrf, origin: 'null', 'sec-fetch-site': 'cross-site' },
    'no origin, same site': { ...csrf, 'sec-fetch-site': 'same-site' },
    'no origin, cross site': { ...csrf, 'sec-fetch-site': 'cross-site' },
    'no origin, no site': { ...csrf, 'sec-fetch-site': 'none' },
    'an empty origin': { ...csrf, origin: '' },
    'another port': { ...csrf, origin: `${APP}:8443` },
    'another scheme': { ...csrf, origin: 'http://app.example' },
    'a longer name': { ...csrf, origin: `${APP}.evil.example` },
    'capitals, which no browser sends': { ...csrf, origin: 'HTTPS://APP.EXAMPLE' },
  }
  for (const [name, headers] of Object.entries(passing)) {
    t.equal((await send('GET', ACCOUNTS, { headers: { cookie, ...headers } })).status, 200, name)
  }
  t.equal(upstream.requests.length, Object.keys(passing).length)
  upstream.reset()
  for (const [name, headers] of Object.entries(refused)) {
    for (const [method, path] of [
      ['GET', ACCOUNTS],
      ['POST', ACCOUNTS],
      ['GET', '/api/v1/health'],
      ['POST', '/auth/logout'],
    ] as const) {
      const response = await send(method, path, { headers: { cookie, ...headers } })
      t.equal(response.status, 403, `${name}: ${method} ${path}`)
      t.equal(response.json['code'], 'csrf_rejected')
    }
  }
  t.same(upstream.requests, [], 'no call reaches upstream')
  t.equal((await send('GET', ACCOUNTS, { headers: { cookie, ...csrf } })).status, 200, 'nobody was logged out')
  t.equal(provider.tokenRequests(), 1)
})

await test('every csrf_rejected is logged', async (t) => {
  const settings = { API_REQUESTS_PER_MINUTE: '1' }
  const { send, cookie, server } = await startWorld(t, { ...API, settings })
  const evil = { origin: 'https://evil.example' }
  const login = { path: '/auth/login', headers: { 'sec-fetch-dest': 'image' } }
  await send('GET', ACCOUNTS, { headers: { cookie } })
  await send('OPTIONS', ACCOUNTS, { headers: { ...evil, 'access-control-request-method': 'GET' } })
  await send('GET', login.path, { headers: login.headers })
  await earlyInAMinute()
  for (let call = 0; call < 2; call++) await send('GET', ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
  const lines = server.log.filter(({ audit }) => audit === 'refused')
  t.same(
    lines.map(({ code }) => code),
    ['csrf_rejected', 'origin_rejected', 'navigation_required', 'rate_limited'],
  )
  t.ok(lines.every(({ client, reqId }) => client === '127.0.0.1' && typeof reqId === 'string'))
})

await test('responses allow listed origins, and no others, to read them', async (t) => {
  const { send, cookie, upstream } = await startWorld(t, { ...API, settings: { FRONTEND_ORIGINS: APP } })
  upstream.answer = ({ target }, socket) => {
    const status = target.includes('fail') ? '500 Oh' : '200 OK'
    socket.write(`HTTP/1.1 ${status}\r\nAccess-Control-Allow-Origin: *\r\nVary: Cookie\r\nContent-Length: 0\r\n\r\n`)
  }
  const calls: [method: string, path: string, status: number, headers?: Headers][] = [
    ['GET', ACCOUNTS, 200],
    ['GET', `${ACCOUNTS}?fail`, 500],
    ['GET', ACCOUNTS, 401, { cookie: '' }],
    ['GET', ACCOUNTS, 403, { 'x-csrf': '0' }],
    ['GET', `${ACCOUNTS}?a=%20#`, 400],
    ['GET', '/api/nothing', 404],
    ['GET', '/api', 404],
    ['GET', '/api/payment-agents/v1/agents/%zz', 400],
    ['DELETE', ACCOUNTS, 405],
    ['PROPFIND', ACCOUNTS, 405],
    ['POST', '/auth/logout', 403, { 'x-csrf': '0' }],
    ['GET', '/auth/session', 200],
    ['POST', '/auth/session', 403, { 'x-csrf': '0' }],
    ['POST', '/auth/session', 401, { cookie: '' }],
    ['GET', '/auth/logout', 405],
  ]
  for (const [method, path, status, headers] of calls) {
    const name = `${method} ${path} → ${status}`
    const all = { cookie, 'x-csrf': '1', ...headers }
    const listed = await send(method, path, { headers: { ...all, origin: APP } })
    t.equal(listed.status, status, name)
    t.equal(listed.headers['access-control-allow-origin'], APP)
    t.equal(listed.headers['access-control-allow-credentials'], 'true')
    t.match(listed.headers['access-control-expose-headers'], /x-request-id.*retry-after|retry-after.*x-request-id/)
    t.equal(listed.headers['cross-origin-resource-policy'], 'same-site')
    t.equal(listed.headers.vary, 'Origin')
    const foreign = await send(method, path, { headers: { ...all, origin: 'https://evil.example' } })
    const own = await send(method, path, { headers: all })
    t.equal(own.status, status)
    for (const response of [foreign, own]) {
      t.notOk(Object.keys(response.headers).some((header) => header.startsWith('access-control-')))
      t.equal(response.headers['cross-origin-resource-policy'], 'same-origin')
      t.equal(response.headers.vary, 'Origin')
      t.equal(response.headers['x-content-type-options'], 'nosniff')
      t.equal(response.headers['cache-control'], 'no-store')
    }
  }
  for (const path of ['/auth/login', '/openapi.json', '/nothing', '/auth/callback', '/apix']) {
    const { headers } = await send('GET', path, { headers: { origin: APP } })
    t.equal(headers['access-control-allow-origin'], undefined, `scripts of other origins may not read ${path}`)
    t.equal(headers['cross-origin-resource-policy'], 'same-site')
    t.equal(headers['x-content-type-options'], 'nosniff')
  }
})

await test('the server answers preflights itself', async (t) => {
  const { send, upstream } = await startWorld(t, { ...API, settings: { FRONTEND_ORIGINS: APP } })
  const ask = (path: string, headers: Headers) => send('OPTIONS', path, { headers })
  const method = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-csrf' }
  for (const [path, methods] of [
    [ACCOUNTS, 'GET, POST, PATCH'],
    ['/api/payment-agents/v1/clients/me', 'GET, POST, PATCH'],
    ['/auth/session', 'GET, POST'],
    ['/auth/logout', 'POST'],
  ] as const) {
    const { status, headers } = await ask(path, { ...method, origin: APP })
    t.equal(status, 204, path)
    t.equal(headers['access-control-allow-origin'], APP)
    t.equal(headers['access-control-allow-credentials'], 'true')
    t.equal(headers['access-control-allow-methods'], methods)
    t.match(headers['access-control-allow-headers'], /(^|, )x-csrf(,|$)/)
    t.match(headers['access-control-allow-headers'], /idempotency-key/)
    t.match(headers.vary, /^Origin, Access-Control-Request-Method, Access-Control-Request-Headers$/)
    t.equal(headers['access-control-max-age'], '600')
    for (const origin of ['https://evil.example', 'null', '']) {
      const refused = await ask(path, { ...method, origin })
      t.equal(refused.status, 403, `${path} for ${origin}`)
      t.equal(refused.json['code'], 'origin_rejected')
      t.equal(refused.headers['access-control-allow-origin'], undefined)
      t.equal(refused.headers['access-control-allow-methods'], undefined)
    }
    const plain = await ask(path, { origin: APP })
    t.equal(plain.status, 405, `${path}: OPTIONS that is no preflight`)
  }
  t.equal((await ask(ACCOUNTS, {})).headers.allow, 'GET, POST')
  t.equal((await ask('/api/v1/health', {})).headers.allow, 'GET')
  t.equal((await ask('/auth/login', { ...method, origin: APP })).status, 405, 'a navigation has no preflight')
  t.same(upstream.requests, [])
})

await test('an https server sends HSTS in every response, also to a request that it cannot parse', async (t) => {
  const { port } = await testServer(t, { ...ALONE, PUBLIC_URL: 'https://localhost' })
  for (const path of ['/nothing', '/api/v1/health', '/auth/session', '/api/payment-agents/v1/agents/%zz']) {
    const { headers } = await sendTo(port, 'GET', path)
    t.match(headers['strict-transport-security'], /^max-age=\d{7,}/, path)
  }
  const socket = connect(port, '127.0.0.1')
  socket.write('rubbish\r\n\r\n')
  t.match(await readAll(socket), /\r\nStrict-Transport-Security: max-age=/)
})

await test('the 101 of a socket has the headers of every response', async (t) => {
  const { port } = await testServer(t, {
    ...ALONE,
    PUBLIC_URL: 'https://localhost',
    FRONTEND_ORIGINS: `https://localhost,${APP}`,
  })
  for (const [origin, policy] of [
    ['https://localhost', 'same-origin'],
    [APP, 'same-site'],
  ] as const) {
    const request = get({
      port,
      path: '/ws/session',
      headers: {
        origin,
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      },
    })
    const [{ headers }, socket] = (await once(request, 'upgrade')) as [IncomingMessage, Socket]
    socket.destroy()
    t.match(headers, {
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': policy,
      'strict-transport-security': /^max-age=\d{7,}/,
      'x-request-id': /^[\da-f-]{36}$/,
    })
  }
})
