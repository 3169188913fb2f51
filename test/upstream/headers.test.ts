import { test } from 'tap'
import {
  ownRequestHeaders,
  passedOn,
  REQUEST_HEADERS,
  requestHeaders,
  responseHeaders,
  USER_AGENT,
  type UpstreamHeaders,
} from '../../src/upstream/headers.ts'

const OWN = ['user-agent', 'trading-bff', 'x-request-id', 'request']
/** Headers of a response that pass, and those that do not. */
const PASSES: UpstreamHeaders = {
  'content-type': 'application/json',
  'content-encoding': 'gzip',
  'content-language': 'en',
  'content-disposition': 'attachment',
  etag: '"1"',
  'last-modified': 'yesterday',
  'retry-after': '7',
}
const LIMITS: UpstreamHeaders = { ratelimit: 'a', 'ratelimit-policy': 'b', 'x-ratelimit-limit': ['1', '2'] }
const STAYS: UpstreamHeaders = {
  'set-cookie': ['a=b'],
  server: 'secret',
  'x-other': '1',
  'x-ratelimit': '1',
  'a-ratelimit': '1',
  'cache-control': 'public',
}

/** The names and values of a flat list. */
function pairs(list: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(
    list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1]]] : [])) as [string, unknown][],
  )
}

await test('a request takes along what its browser may say to upstream, and nothing else', (t) => {
  const sent = Object.fromEntries(REQUEST_HEADERS.map((name) => [name, `of ${name}`]))
  const more = { cookie: 'a=b', authorization: 'secret', 'user-agent': 'browser', host: 'here', 'x-csrf': '1' }
  const list = requestHeaders({ ...sent, ...more }, 'request')
  t.same(list.slice(0, 4), OWN)
  t.same(pairs(list.slice(4)), sent)
  t.same(REQUEST_HEADERS, [
    'accept',
    'accept-encoding',
    'accept-language',
    'content-type',
    'if-none-match',
    'if-modified-since',
    'idempotency-key',
    'traceparent',
    'tracestate',
  ])
  t.same(requestHeaders({ accept: ['a', 'b'] as never }, 'request'), OWN)
  t.equal(USER_AGENT, 'trading-bff')
  t.end()
})

await test('what Connection names goes no further, in either direction', (t) => {
  const accept = { accept: 'a', traceparent: 'b' }
  t.same(requestHeaders({ ...accept, connection: 'x, ACCEPT , close' }, 'request'), [...OWN, 'traceparent', 'b'])
  for (const nothing of ['keep-alive', 'Keep-Alive', 'close', 'upgrade', 'Upgrade', '', 'x-other']) {
    t.same(requestHeaders({ ...accept, connection: nothing }, 'request'), [...OWN, 'accept', 'a', 'traceparent', 'b'])
  }
  for (const connection of ['close, etag', 'ETag', ['close', 'Etag']]) {
    const { etag: _, ...rest } = PASSES
    t.same(passedOn({ ...PASSES, connection }, false), rest)
    t.same(pairs(responseHeaders(200, [], { ...PASSES, connection }, false)), { 'cache-control': 'no-store', ...rest })
  }
  t.end()
})

await test('a request of this server by itself has the token and the app', (t) => {
  t.same(ownRequestHeaders('request', 'token', { appIdHeader: 'app', appId: '7' }), [
    ...OWN,
    'accept',
    'application/json',
    'authorization',
    'Bearer token',
    'app',
    '7',
  ])
  t.end()
})

await test('a response passes on what it is, and with no budget of calls the limits of upstream', (t) => {
  const all = { ...PASSES, ...LIMITS, ...STAYS, 'content-length': '2' }
  t.same(passedOn(all, false), { ...PASSES, ...LIMITS, 'content-length': '2' })
  t.same(passedOn(all, true), { ...PASSES, 'content-length': '2' })
  const own = { 'cache-control': 'no-store', 'x-own': '1' }
  t.same(pairs(responseHeaders(200, ['x-own', '1'], all, false)), {
    ...own,
    ...PASSES,
    ...LIMITS,
    'content-length': '2',
  })
  t.same(pairs(responseHeaders(200, ['x-own', '1'], all, true)), { ...own, ...PASSES, 'content-length': '2' })
  t.end()
})

await test('the length of a response comes last, and a 204 has none', (t) => {
  const headers = { 'content-length': '2', 'content-disposition': 'x' }
  const start = ['cache-control', 'no-store', 'content-disposition', 'x']
  t.same(responseHeaders(200, [], headers, true), [...start, 'content-length', '2'])
  t.same(responseHeaders(204, [], headers, true), start)
  t.same(responseHeaders(200, [], { 'content-disposition': 'x' }, true), start)
  t.end()
})
