import { test, type Test } from 'tap'
import { ok } from '../support/upstream/raw-upstream.ts'
import { startWorld, type World, API } from '../support/world.ts'
import { ACCOUNTS, type CallInit } from '../support/user.ts'

const BULK = '/api/trading/v1/options/contracts/bulk-purchase/real'
const REFUSED = 'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error="invalid_token"\r\nContent-Length: 2\r\n\r\n{}'

/** A call that reads, one that orders, and one that orders with an Idempotency-Key. */
const CALLS: readonly (readonly [method: string, init?: CallInit])[] = [
  ['GET'],
  ['POST', { body: '{}' }],
  ['POST', { body: '{}', headers: { 'idempotency-key': 'key' } }],
]

const isLive = async ({ send, cookie }: World<'raw'>): Promise<unknown> =>
  (await send('GET', '/auth/session', { headers: { cookie } })).json['authenticated']

/** The bearers that arrived, in order. */
const bearers = ({ upstream }: World<'raw'>): (string | undefined)[] =>
  upstream.requests.map(({ headers }) => headers.find(([name]) => name === 'authorization')?.[1])

await test('a 401 of upstream ends a session without a refresh token', async (t) => {
  for (const [method, init] of CALLS) {
    const api = await startWorld(t, API)
    api.upstream.answer = (_request, socket) => void socket.write(REFUSED)
    const response = await api.call(method, ACCOUNTS, init)
    t.equal(response.status, 401, `${method} ${JSON.stringify(init)}`)
    t.match(response.json, { code: 'session_expired', login_url: `${api.server.url}/auth/login` })
    t.equal(response.headers['www-authenticate'], 'Session')
    t.equal(response.json['outcome'], undefined, 'a refused call was not executed')
    t.equal(api.upstream.requests.length, 1)
    t.equal(await isLive(api), false)
    t.equal((await api.call('GET', ACCOUNTS)).json['code'], 'login_required')
    t.equal(api.upstream.requests.length, 1)
  }
})

await test('a 401 to a call without a bearer passes, and so does every 403', async (t) => {
  const api = await startWorld(t, API)
  api.upstream.answer = (_request, socket) => void socket.write(REFUSED)
  const bulk = await api.call('POST', BULK, { body: '{"accounts":[]}' })
  t.equal(bulk.status, 401)
  t.equal(bulk.text, '{}')
  t.same(bearers(api), [undefined])
  t.equal((await api.call('GET', '/api/v1/health')).status, 401)
  api.upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 403 Scope\r\nContent-Length: 2\r\n\r\n[]')
  for (const method of ['GET', 'POST']) {
    const response = await api.call(method, ACCOUNTS)
    t.equal(response.status, 403)
    t.equal(response.text, '[]')
  }
  t.equal(await isLive(api), true, 'the session goes on')
})

/** A world in which tokens can be renewed, and whose upstream refuses the first call. */
async function refusedOnce(t: Test): Promise<World<'raw'>> {
  const api = await startWorld(t, { ...API, provider: { refreshTokens: true } })
  const { upstream } = api
  upstream.answer = (_request, socket) => void socket.write(upstream.requests.length === 1 ? REFUSED : ok('{"done":1}'))
  return api
}

await test('after a 401 a GET is repeated with a renewed token', async (t) => {
  const api = await refusedOnce(t)
  const got = await api.call('GET', `${ACCOUNTS}?a=1`)
  t.equal(got.status, 200)
  t.equal(got.text, '{"done":1}')
  const [old, renewed, ...more] = bearers(api)
  t.same(more, [])
  t.not(old, renewed)
  t.equal(api.provider.tokenRequests(), 2)
})

await test('after a 401 a POST gets 503 with Retry-After: 0', async (t) => {
  const api = await refusedOnce(t)
  const { upstream, call, provider } = api
  const posted = await call('POST', ACCOUNTS, { body: '{"buy":1}' })
  t.equal(posted.status, 503)
  t.match(posted.json, { code: 'credential_renewed' })
  t.equal(posted.json['outcome'], undefined)
  t.equal(posted.headers['retry-after'], '0')
  t.equal(upstream.requests.length, 1, 'the server does not repeat the order')
  t.equal((await call('POST', ACCOUNTS, { body: '{"buy":1}' })).status, 200, 'the browser repeats it')
  t.not(bearers(api)[1], bearers(api)[0])
  t.equal(provider.tokenRequests(), 2)
})

await test('concurrent calls with a refused token renew it once', async (t) => {
  const api = await startWorld(t, { ...API, provider: { refreshTokens: true } })
  const { upstream, call, provider } = api
  upstream.answer = ({ headers }, socket) => {
    const isOld = headers.some(([name, value]) => name === 'authorization' && value === bearers(api)[0])
    socket.write(isOld ? REFUSED : ok())
  }
  const responses = await Promise.all(Array.from({ length: 20 }, () => call('GET', ACCOUNTS)))
  t.ok(responses.every(({ status }) => status === 200))
  t.equal(provider.tokenRequests(), 2)
})

await test('a renewed token that is refused ends the session', async (t) => {
  const api = await startWorld(t, { ...API, provider: { refreshTokens: true } })
  api.upstream.answer = (_request, socket) => void socket.write(REFUSED)
  const response = await api.call('GET', ACCOUNTS)
  t.equal(response.status, 401)
  t.equal(response.json['code'], 'session_expired')
  t.equal(api.upstream.requests.length, 2, 'upstream is called once with each token')
  t.equal(await isLive(api), false)
})

await test('a 401 of upstream while the provider is down does not end the session', async (t) => {
  const api = await startWorld(t, { ...API, provider: { refreshTokens: true } })
  api.upstream.answer = (_request, socket) => void socket.write(REFUSED)
  await api.provider.close()
  for (const [method, init] of CALLS) {
    const response = await api.call(method, ACCOUNTS, init)
    t.equal(response.status, 503, `${method} ${JSON.stringify(init)}`)
    t.equal(response.json['code'], 'provider_unavailable')
  }
  t.equal(await isLive(api), true)
})
