import { test } from 'tap'
import { catalog } from '../../src/proxy/catalog.ts'
import { EXPECTED, isRoutedBy, OVERVIEW } from '../support/proxy/expected-endpoints.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { CLIENT_ID } from '../support/server/test-server.ts'
import { startWorld, API } from '../support/world.ts'

/** Headers that a browser may send, and those that pass upstream. */
const PASSED_ON = {
  accept: 'application/json;q=0.9, */*',
  'accept-encoding': 'gzip, br',
  'accept-language': 'de-DE, en;q=0.5',
  'content-type': 'application/vnd.example+json; charset=utf-8',
  'if-none-match': '"abc", W/"d"',
  'if-modified-since': 'Sat, 21 Nov 2026 00:00:00 GMT',
  'idempotency-key': 'key-1',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=1',
}
const KEPT_BACK = {
  origin: 'https://app.example',
  referer: 'https://app.example/secret',
  'sec-fetch-site': 'same-site',
  'user-agent': 'Mozilla/5.0',
  authorization: 'Bearer stolen',
  'proxy-authorization': 'Basic eDp5',
  'service-app-id': 'mine',
  'x-request-id': 'mine',
  'x-forwarded-for': '1.2.3.4',
  'x-forwarded-host': 'evil.example',
  forwarded: 'for=1.2.3.4',
  via: '1.1 proxy',
  connection: 'authorization, service-app-id, close',
  te: 'trailers',
  range: 'bytes=0-1',
  'cache-control': 'no-cache',
  'x-http-method-override': 'DELETE',
  'x-original-url': '/admin',
}

await test('every endpoint arrives upstream with its method, path, credential and headers', async (t) => {
  const { call, send, upstream, cookie, provider, server } = await startWorld(t, {
    ...API,
    settings: { FRONTEND_ORIGINS: 'https://app.example' },
  })
  const tokens = provider.issued
  upstream.answer = (_request, socket) => void socket.write(ok('{"data":1}', 'ETag: "x"\r\nX-Brand: y\r\n'))

  for (const [method, path, credential] of EXPECTED) {
    const name = `${method} ${path}`
    const query = path === OVERVIEW ? '?start_date=2024-02-29&end_date=2026-02-28' : '?b=2&a=%20/%2F&b=1&c'
    const body = `{"quantity": 1.50,\n "text":"\u00e9\u0000"} trailing ${path}`
    const passedOn = { ...PASSED_ON, 'idempotency-key': name }
    const headers = { ...passedOn, ...KEPT_BACK }
    upstream.reset()
    const response = await call(method, `/api${path}${query}`, { headers, ...(method !== 'GET' && { body }) })
    t.equal(response.status, 200, name)
    t.match(response.headers, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    t.equal(response.headers['x-brand'], undefined)
    const [seen, ...more] = upstream.requests
    t.same(more, [], `${name}: one request`)
    if (credential === 'none') {
      t.equal(seen?.target, path, 'a shared response has no query')
      t.same(seen?.headers.map(([header]) => header).sort(), ['connection', 'host', 'user-agent', 'x-request-id'])
      continue
    }
    t.equal(seen?.method, method)
    t.equal(seen?.target, path + query)
    t.equal(seen?.body, method === 'GET' ? '' : Buffer.from(body).toString('latin1'))
    const { authorization, ...others } = Object.fromEntries(seen?.headers ?? [])
    const { 'x-request-id': requestId, ...expected } = {
      ...passedOn,
      host: new URL(upstream.url).host,
      connection: 'keep-alive',
      'user-agent': 'trading-bff',
      'service-app-id': CLIENT_ID,
      'x-request-id': response.headers['x-request-id'],
      ...(method !== 'GET' && { 'content-length': String(Buffer.byteLength(body)) }),
    }
    t.same(others, { ...expected, 'x-request-id': requestId }, `${name}: these headers and no others`)
    t.equal(seen?.headers.length, Object.keys(others).length + (authorization === undefined ? 0 : 1))
    if (credential === 'pat') t.equal(authorization, undefined, `${name}: never a bearer`)
    else t.ok(tokens.has(authorization?.replace('Bearer ', '') ?? ''), `${name}: the session's bearer`)
  }

  await t.test('a call without a session gets login_required where the endpoint needs one', async (t) => {
    upstream.reset()
    for (const [method, path, credential] of EXPECTED) {
      const response = await send(method, `/api${path}`, { headers: { 'x-csrf': '1' } })
      t.equal(response.status, credential === 'none' ? 200 : 401, `${method} ${path}`)
      if (credential === 'none') continue
      t.equal(response.json['code'], 'login_required')
      t.equal(response.json['login_url'], `${server.url}/auth/login`)
      t.equal(response.headers['www-authenticate'], 'Session')
    }
    const [name = '', value = ''] = cookie.split('=')
    for (const bad of [`${cookie}; ${cookie}`, `${cookie}x`, `${name}=`, `x${name}=${value}`]) {
      const headers = { 'x-csrf': '1', cookie: bad }
      t.equal((await send('GET', '/api/account/v1/nickname', { headers })).status, 401, bad.slice(0, 20))
    }
    t.same(
      upstream.requests.filter(({ target }) => target !== '/v1/health'),
      [],
    )
  })

  await t.test('every other method gets 405', async (t) => {
    upstream.reset()
    for (const path of new Set(EXPECTED.map(([, path]) => path))) {
      const routed = catalog(OVERVIEW).filter((endpoint) => isRoutedBy(endpoint, path))
      const allowed = ['GET', 'POST', 'PATCH'].filter((method) => routed.some((endpoint) => endpoint.method === method))
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'OPTIONS']) {
        if (allowed.includes(method)) continue
        const response = await call(method, `/api${path}`)
        t.equal(response.status, 405, `${method} ${path}`)
        t.equal(response.headers.allow, allowed.join(', '))
      }
    }
    t.same(upstream.requests, [])
  })
})

await test('a wrong id or kind in a path gets 404', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  for (const [method, path] of [
    ['POST', '/trading/v1/options/contracts/bulk-purchase/REAL'],
    ['POST', '/trading/v1/options/contracts/bulk-purchase/real2'],
    ['POST', '/trading/v1/options/contracts/bulk-purchase/test'],
    ['GET', '/payment-agents/v1/agents/a.b'],
    ['GET', '/payment-agents/v1/agents/a~b'],
    ['GET', '/payment-agents/v1/agents/a:b'],
    ['GET', `/wallet/v1/transactions/${'a'.repeat(65)}`],
    ['POST', '/trading/v1/options/accounts/a$/reset-demo-balance'],
    ['POST', '/trading/v1/options/accounts/abc/otp'],
    ['GET', '/partners/analytics/v1/overview/x'],
  ] as const) {
    const response = await call(method, `/api${path}`)
    t.equal(response.status, 404, path)
    t.equal(response.json['code'], 'not_found')
  }
  t.same(upstream.requests, [])
})
