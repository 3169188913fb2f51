import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { test, type Test } from 'tap'
import { catalogRoutes } from '../../src/proxy/catalog-routes.ts'
import type { Endpoint } from '../../src/proxy/endpoint.ts'
import { openApiDocument } from '../../src/proxy/openapi.ts'
import { readConfig } from '../../src/config/config.ts'
import { Guard } from '../../src/http/guard.ts'
import { createServer } from '../../src/http/server.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { Envelope, Sessions } from '../../src/sessions/index.ts'
import { Provider } from '../../src/oauth/provider.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { RestClient } from '../../src/upstream/rest-client.ts'
import { sendTo, type Answer, type CallInit } from '../support/api-world.ts'
import { ok, rawUpstream, type RawUpstream } from '../support/raw-upstream.ts'
import { CLIENT_ID, SECRETS } from '../support/world.ts'

/** Rules that the catalog supports and no endpoint of upstream needs. */
const PLAIN = { credential: 'none', summary: 'For this test' } as const
const ENDPOINTS: readonly Endpoint[] = [
  { ...PLAIN, method: 'POST', path: '/usual' },
  { ...PLAIN, method: 'POST', path: '/small', maxBodyBytes: 10 },
  { ...PLAIN, method: 'POST', path: '/large', maxBodyBytes: 1000 },
  { ...PLAIN, method: 'POST', path: '/bodiless', body: 'none' },
  { ...PLAIN, method: 'GET', path: '/usual' },
  { ...PLAIN, method: 'GET', path: '/quick', timeoutMs: 200 },
  { ...PLAIN, method: 'GET', path: '/patient', timeoutMs: 60_000 },
  { ...PLAIN, method: 'GET', path: '/quick-for-all', timeoutMs: 200, isShared: true },
]

/** A server with these endpoints and nothing else. */
async function serverOf(
  t: Test,
  upstream: RawUpstream,
  settings: Record<string, string>,
): Promise<{
  server: FastifyInstance
  send: (method: string, path: string, init?: CallInit) => Promise<Answer>
}> {
  const config = readConfig({
    PUBLIC_URL: 'http://localhost:3000',
    CLIENT_ID,
    SESSION_SECRETS: SECRETS,
    AUTH_URL: 'http://localhost:1',
    API_URL: upstream.url,
    WS_URL: 'ws://localhost:1',
    ...settings,
  })
  const log = pino({ level: 'silent' })
  const store = new MemoryStore()
  const envelope = new Envelope(config.secrets)
  const metrics = createMetrics()
  const provider = new Provider(config.oauth)
  const sessions = new Sessions(config, { store, envelope, provider, metrics, log })
  const guard = new Guard(config.http, log)
  const rest = new RestClient(config.upstream)
  const server = createServer(config.http, log, metrics, guard)
  const { http, upstream: upstreamConfig } = config
  await catalogRoutes(server, ENDPOINTS, {
    http,
    upstream: upstreamConfig,
    guard,
    metrics,
    sessions,
    rest,
    orders: rest,
    shared: { store, envelope, everyMs: 1 },
  })
  await server.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => Promise.all([server.close(), rest.close(), provider.close(), store.close()]))
  const { port } = server.server.address() as AddressInfo
  return {
    server,
    send: (method, path, init = {}) =>
      sendTo(port, method, `/api${path}`, { ...init, headers: { 'x-csrf': '1', ...init.headers } }),
  }
}

await test('maxBodyBytes of an endpoint replaces MAX_BODY_BYTES', async (t) => {
  const upstream = await rawUpstream(t)
  const { send } = await serverOf(t, upstream, { MAX_BODY_BYTES: '100' })
  for (const [path, most] of [
    ['/small', 10],
    ['/usual', 100],
    ['/large', 1000],
  ] as const) {
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }] as const) {
      const name = `${path} ${JSON.stringify(headers)}`
      upstream.reset()
      t.equal((await send('POST', path, { body: 'a'.repeat(most), headers })).status, 200, name)
      t.equal(upstream.requests[0]?.body.length, most, name)
      const answer = await send('POST', path, { body: 'a'.repeat(most + 1), headers })
      t.equal(answer.status, 413, name)
      t.equal(answer.json['code'], 'body_too_large')
      t.equal(upstream.requests.length, 1, `${name}: no whole request arrived`)
    }
  }
})

await test('an endpoint without a body sends none upstream', async (t) => {
  const upstream = await rawUpstream(t)
  const { send } = await serverOf(t, upstream, {})
  for (const [method, path] of [
    ['POST', '/bodiless'],
    ['GET', '/usual'],
  ] as const) {
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }] as const) {
      upstream.reset()
      t.equal((await send(method, path, { body: 'dropped', headers })).status, 200, path)
      t.equal(upstream.requests[0]?.body, '')
      t.equal(upstream.header('transfer-encoding'), undefined)
      t.equal(upstream.header('content-length'), method === 'GET' ? undefined : '0')
    }
  }
  t.notMatch(upstream.received.join(''), /dropped/)
})

await test('timeoutMs of an endpoint replaces UPSTREAM_HEADERS_SECONDS', async (t) => {
  const upstream = await rawUpstream(t)
  const { server, send } = await serverOf(t, upstream, { UPSTREAM_HEADERS_SECONDS: '1' })
  // A shorter limit for idle connections, but longer than the default timeout.
  server.server.timeout = 2500
  const asked = new Map<string, Socket>()
  upstream.answer = ({ target }, socket) => void asked.set(target, socket)

  const patient = send('GET', '/patient')
  // The default is 15 s.
  const slow = await serverOf(t, upstream, {})
  const quick = ['/quick', '/quick-for-all'].map((path) => slow.send('GET', path))
  const usual = send('GET', '/usual')
  t.ok(
    await Promise.race([Promise.all(quick), usual.then(() => false)]),
    'the endpoint with its own timeout fails first',
  )
  for (const answer of await Promise.all([...quick, usual])) {
    t.equal(answer.status, 504)
    t.equal(answer.json['code'], 'upstream_timeout')
  }
  const idle = connect((server.server.address() as AddressInfo).port, '127.0.0.1')
  await once(idle.resume(), 'close')
  asked.get('/patient')?.write(ok('{"late":1}'))
  const answer = await patient
  t.equal(answer.status, 200, 'an endpoint with a longer timeout gets its response')
  t.equal(answer.text, '{"late":1}')
})

await test('/openapi.json shows the rules of an endpoint', (t) => {
  const facts = { publicUrl: 'http://localhost', sessionCookie: 'session', maxBodyBytes: 100 }
  const { paths } = openApiDocument(ENDPOINTS, facts) as {
    paths: Record<string, Record<string, { requestBody?: { description: string }; responses: object }>>
  }
  const bodyOf = (method: string, path: string): string | undefined =>
    paths[`/api${path}`]?.[method]?.requestBody?.description
  t.match(bodyOf('post', '/small'), /up to 10 bytes/)
  t.match(bodyOf('post', '/usual'), /up to 100 bytes/)
  t.match(bodyOf('post', '/large'), /up to 1000 bytes/)
  t.equal(bodyOf('get', '/usual'), undefined)
  t.equal(bodyOf('post', '/bodiless'), undefined)
  t.ok('413' in (paths['/api/usual']?.['post']?.responses ?? {}))
  t.notOk('413' in (paths['/api/bodiless']?.['post']?.responses ?? {}))
  t.end()
})
