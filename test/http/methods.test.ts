import { test } from 'tap'
import { startWorld, API } from '../support/world.ts'

await test('a wrong method, HEAD included, gets 405 with Allow, and an unknown path 404', async (t) => {
  const { send, raw, upstream, cookie } = await startWorld(t, API)
  const headers = { cookie, 'x-csrf': '1' }
  const allowed: Record<string, string> = {
    '/auth/login': 'GET',
    '/auth/signup': 'GET, HEAD',
    '/auth/callback': 'GET',
    '/auth/session': 'GET, POST',
    '/auth/logout': 'POST',
    '/openapi.json': 'GET',
    '/api/v1/health': 'GET',
    '/api/payment-agents/v1/clients/me': 'GET, PATCH',
    '/api/payment-agents/v1/withdraw/verification_code': 'GET, POST',
    '/asyncapi.json': 'GET',
    '/client.js': 'GET',
    '/client/orders.js': 'GET',
    '/client/series.js': 'GET',
    '/ws/public': 'GET',
    '/ws/session': 'GET',
    '/ws/trading/abc': 'GET',
  }
  for (const [path, allow] of Object.entries(allowed)) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'QUERY', 'PURGE']) {
      if (allow.split(', ').includes(method)) continue
      const response = await send(method, path, { headers })
      t.equal(response.status, 405, `${method} ${path}`)
      t.equal(response.headers.allow, allow)
      t.equal(response.headers['x-content-type-options'], 'nosniff')
      if (method !== 'HEAD') t.equal(response.json['code'], 'method_not_allowed')
    }
  }
  t.equal((await send('OPTIONS', '/auth/login', { headers })).status, 405, 'a preflight of a login')
  const bad = { headers: { ...headers, 'content-type': 'no type' }, body: 'not JSON' }
  t.equal((await send('PUT', '/api/v1/health', bad)).status, 405, 'the body does not matter')
  for (const method of ['GET', 'POST', 'PROPFIND', 'HEAD']) {
    const response = await send(method, '/nothing', method === 'POST' ? bad : { headers })
    t.equal(response.status, 404, `${method} /nothing`)
    t.equal(response.headers.allow, undefined)
  }
  t.match(await raw('BREW /api/v1/health HTTP/1.1\r\nHost: h\r\n\r\n'), /^HTTP\/1\.1 400 /, 'an unknown method')
  t.equal(await raw('CONNECT upstream:443 HTTP/1.1\r\nHost: upstream:443\r\n\r\n'), '', 'CONNECT opens no tunnel')
  t.match(
    await raw('GET /api/v1/health HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: close, upgrade\r\n\r\n'),
    /^HTTP\/1\.1 403 /,
    'an upgrade is ignored',
  )
  t.match(
    await raw('GET /api/v1/health HTTP/1.1\r\nHost: h\r\nExpect: tea\r\nConnection: close\r\n\r\n'),
    /^HTTP\/1\.1 403 /,
    'an expectation is ignored',
  )
  t.same(upstream.requests, [])
})
