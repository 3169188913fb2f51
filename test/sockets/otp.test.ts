import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import type { Config } from '../../src/config/config.ts'
import { OtpClient } from '../../src/sockets/relay/otp.ts'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { NotStarted } from '../../src/upstream/exchange.ts'
import type { RestClient } from '../../src/upstream/rest-client.ts'
import { within } from '../support/time/until.ts'

const CAUSE = Object.assign(new Error('wss://secret.example/'), { code: 'ECONNREFUSED' })
const HOUR_MS = 3_600_000

/** A client of one-time URLs, and what it asks upstream. */
function client({ wsUrl = 'wss://ws.example/', otpHosts = [] as readonly string[], headersMs = HOUR_MS } = {}) {
  const asked: unknown[] = []
  const world = { outcome: {} as unknown }
  const rest = {
    exchange: async (...args: unknown[]) => {
      asked.push(...args)
      return world.outcome
    },
  } as unknown as RestClient
  const relay = { wsUrl, otpHosts, otpUrlPointer: '/data/url' } as unknown as Config['relay']
  const upstream = { appIdHeader: 'app', appId: 'id', headersMs } as Config['upstream']
  const otp = new OtpClient(rest, relay, upstream)
  const { signal } = new AbortController()
  const caller = { subject: 'CR1', source: () => 'source', conditions: {} }
  const request = async (outcome: unknown, leaving = signal) => {
    world.outcome = outcome
    return otp.request('VRTC100', 'token', { id: 'request', signal: leaving, ...caller })
  }
  const answered = async (body: string, status = 200, headers = {}) =>
    request({ is: 'answered', response: { status, headers, body: Buffer.from(body) } })
  /** The URL that is found, or why none is. */
  const found = async (body: unknown): Promise<string> => {
    const outcome = await answered(typeof body === 'string' ? body : JSON.stringify(body))
    if (outcome.is === 'url') return outcome.url.href
    return outcome.is === 'refused' && outcome.close === CLOSE.upstreamError ? outcome.why : outcome.is
  }
  return { asked, request, answered, found, signal, caller }
}

const at = (url: string) => ({ data: { url } })

await test('a user whose URL has come, or does not come, may ask for as many more', async (t) => {
  const { request, found } = client({ headersMs: 50 })
  for (let count = 0; count < 16; count++) t.equal((await request({ is: 'overBudget' })).is, 'overBudget')
  t.equal(await found(at('wss://ws.example/')), 'wss://ws.example/')
  t.equal(await found(at('wss://ws.example/')), 'wss://ws.example/')
})

await test('one URL is asked for, with the bearer and in the name of the user', async (t) => {
  const { asked, found, signal, caller } = client()
  t.equal(await found(at('wss://ws.example/a?b')), 'wss://ws.example/a?b')
  t.match(asked, [
    {
      method: 'POST',
      path: '/trading/v1/options/accounts/VRTC100/otp',
      template: '/trading/v1/options/accounts/:account_id/otp',
      body: null,
      ...caller,
    },
    signal,
  ])
  const { headers } = asked[0] as { headers: string[] }
  t.same(headers.slice(-4), ['authorization', 'Bearer token', 'app', 'id'])
})

await test('a URL is found at its place, or anywhere if it is the only one, also in JSON inside of a text', async (t) => {
  const { found } = client()
  const url = 'wss://ws.example/a'
  const nested = (depth: number): unknown => (depth === 0 ? url : { in: nested(depth - 1) })
  const texts = (depth: number): string => JSON.stringify({ in: depth === 1 ? url : texts(depth - 1) })
  for (const body of [
    { data: { url }, other: 'wss://other.example/' },
    { data: { link: url } },
    [['text', 7, null, url]],
    url.replace(url, JSON.stringify(url)),
    { data: { link: url, same: url } },
    { body: JSON.stringify({ url }) },
    { body: ` \n[${JSON.stringify(url)}]` },
    { data: { link: 'WSS://ws.example/a' } },
    nested(7),
    texts(4),
  ]) {
    t.equal(await found(body), url, JSON.stringify(body))
  }
  for (const [body, why] of [
    ['<h1>', 'the response is not JSON'],
    ['', 'the response is not JSON'],
    [{}, 'the response has no WebSocket URL'],
    [{ data: { url: 7 } }, 'the response has no WebSocket URL'],
    [{ a: `see ${url}` }, 'the response has no WebSocket URL'],
    [{ a: `text [${JSON.stringify(url)}]` }, 'the response has no WebSocket URL'],
    [{ a: '{"broken' }, 'the response has no WebSocket URL'],
    [{ a: JSON.stringify(`${url}?[`) }, 'the response has no WebSocket URL'],
    [nested(8), 'the response has no WebSocket URL'],
    [texts(5), 'the response has no WebSocket URL'],
    [{ a: url, b: 'wss://ws.example/b' }, 'the response has several WebSocket URLs'],
  ] as const) {
    t.equal(await found(body), why, JSON.stringify(body))
  }
})

await test('a URL must have the scheme and the host that are allowed, and neither a user nor a fragment', async (t) => {
  for (const [settings, good, bad] of [
    [
      {},
      ['wss://ws.example/', 'wss://ws.example:443/', 'wss://WS.example/x'],
      ['wss://ws.example:444/', 'wss://w.example/'],
    ],
    [{ wsUrl: 'wss://ws.example:8443/' }, ['wss://ws.example:8443/'], ['wss://ws.example/']],
    [
      { otpHosts: ['a.example', 'b.example:8443'] },
      ['wss://ws.example/', 'wss://a.example/', 'wss://b.example:8443/'],
      ['wss://a.example:8443/', 'wss://b.example/'],
    ],
    [
      { wsUrl: 'ws://ws.example/', otpHosts: ['a.example'] },
      ['ws://ws.example/', 'ws://ws.example:80/', 'ws://a.example/', 'wss://a.example/'],
      ['wss://ws.example/', 'ws://a.example:444/'],
    ],
    [{ wsUrl: 'ws://ws.example/' }, ['wss://ws.example:80/'], ['wss://ws.example/', 'ws://ws.example:443/']],
    [{ wsUrl: 'ws://ws.example:443/' }, ['wss://ws.example/'], ['ws://ws.example/', 'wss://ws.example:80/']],
  ] as const) {
    const { found } = client({ otpHosts: [], ...settings })
    for (const url of good) t.equal(await found(at(url)), new URL(url).href, url)
    for (const url of bad) t.equal(await found(at(url)), 'the URL names a host that is not allowed', url)
  }
  const { found } = client()
  for (const url of ['ws://ws.example/', 'https://ws.example/', 'no URL', '']) {
    t.equal(await found(at(url)), 'the URL has the wrong scheme', url)
  }
  for (const user of ['user', 'user:password', ':password']) {
    t.equal(await found(at(`wss://${user}@ws.example/`)), 'the URL has userinfo', user)
  }
  t.equal(await found(at('wss://ws.example/#a')), 'the URL has a fragment')
})

await test('a status that is no success says how the socket closes', async (t) => {
  const { answered } = client()
  const body = JSON.stringify(at('wss://ws.example/'))
  t.same(await answered(body, 401), { is: 'unauthorized' })
  for (const status of [200, 299]) t.equal((await answered(body, status)).is, 'url', `${status}`)
  for (const [status, close] of [
    [199, CLOSE.upstreamError],
    [300, CLOSE.upstreamError],
    [403, CLOSE.forbidden],
    [404, CLOSE.notFound],
    [500, CLOSE.upstreamError],
  ] as const) {
    t.same(await answered(body, status), { is: 'refused', close, why: `status ${status}`, status })
  }
  const wait = async (retryAfter: unknown) => {
    const outcome = await answered('', 429, { 'retry-after': retryAfter })
    return outcome.is === 'refused' ? outcome.close.retryAfterSeconds : outcome.is
  }
  t.equal(await wait('7'), 7)
  t.equal(await wait(['7', '8']), undefined, 'a header that comes twice says nothing')
})

await test('what became of a request without a response is told without its text, which may have a URL', async (t) => {
  const { request } = client()
  const over = { is: 'overBudget', limited: 'all', retryAfterMs: 1 }
  t.equal(await request(over), over)
  t.same(await request({ is: 'unreachable', cause: new NotStarted({ is: 'stale', why: 'session' }) }), { is: 'stale' })
  t.same(await request({ is: 'unreachable', cause: CAUSE }), {
    is: 'refused',
    close: CLOSE.upstreamUnreachable,
    why: 'unreachable (ECONNREFUSED)',
    cause: CAUSE,
  })
  for (const [outcome, close] of [
    [{ is: 'timeout' }, CLOSE.upstreamTimeout],
    [{ is: 'lost', responseBegan: true }, CLOSE.upstreamError],
    [{ is: 'lost', responseBegan: false }, CLOSE.upstreamLost],
  ] as const) {
    const told = await request({ ...outcome, cause: CAUSE })
    t.same(told, { is: 'refused', close, why: `${outcome.is} (ECONNREFUSED)` })
  }
})

await test('a user whose URLs do not come waits for the next one no longer than for a response', async (t) => {
  const { asked, request } = client({ headersMs: 50 })
  const never = Promise.withResolvers<never>()
  for (let count = 0; count < 16; count++) void request(never.promise)
  await nextTurn()
  t.match(await request({}), { is: 'refused', close: CLOSE.upstreamTimeout, why: /still under way/ })
  t.equal(asked.length, 2 * 16)
})

await test('a browser that has left, or leaves, waits for no one-time URL', async (t) => {
  const { asked, request } = client()
  const never = Promise.withResolvers<never>()
  for (let count = 0; count < 16; count++) void request(never.promise)
  await nextTurn()
  t.match(await within(request({}, AbortSignal.abort()), 'one that has left'), { is: 'refused' })
  const leaving = new AbortController()
  const waiting = request({}, leaving.signal)
  await nextTurn()
  leaving.abort()
  t.match(await within(waiting, 'one that leaves'), { is: 'refused' })
  t.equal(asked.length, 2 * 16)
})
