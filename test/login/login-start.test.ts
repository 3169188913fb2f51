import { request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { scripted, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { startWorld, type World } from '../support/world.ts'

/** Returns a counter of the login records in the store. */
async function loginRecordCounter(t: Test, { redis }: World<'none', TokenEndpoint>): Promise<() => Promise<number>> {
  const client = await storeClient(t, { redis })
  return async () => (await client.keys('*:login:*')).length
}

/** Sends a request with any headers, including Host, and follows no redirect. */
async function raw(
  url: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<{
  status: number
  location: string
  setCookie: string[]
  allow: string | undefined
  body: string
}> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { method, headers }, (response) => {
      const { location = '', 'set-cookie': setCookie = [], allow } = response.headers
      const { statusCode: status = 0 } = response
      text(response).then((body) => resolve({ status, location, setCookie, allow, body }), reject)
    })
      .on('error', reject)
      .end()
  })
}

await test('GET /auth/login: 303 to the provider with exactly the parameters that docs/upstream.md lists', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  const { authorize, arrival } = await world.startLogin()
  const { state, code_challenge: challenge, ...rest } = Object.fromEntries(authorize.searchParams)
  t.equal(`${authorize.origin}${authorize.pathname}`, `${world.provider.url}/oauth2/auth`)
  t.same(rest, {
    response_type: 'code',
    client_id: 'test-client',
    redirect_uri: `${world.server.url}/auth/callback`,
    scope: 'trade account_manage',
    code_challenge_method: 'S256',
  })
  t.match(authorize.search, /[?&]scope=trade\+account_manage(&|$)/, 'scopes are joined by +')
  t.match(state, /^[\w-]{43}$/)
  t.match(challenge, /^[\w-]{43}$/)
  const [hop] = arrival.hops
  t.equal(hop?.status, 303)
  t.equal(hop?.headers.get('cache-control'), 'no-store')
  t.equal(hop?.headers.get('referrer-policy'), 'no-referrer')
  t.equal(hop?.headers.get('x-attribution'), null)
})

await test('GET /auth/login: every login has its own state, code challenge and code verifier', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  const seen = new Set<string>()
  for (let count = 0; count < 5; count++) {
    const { authorize, finish } = await world.startLogin()
    seen.add(authorize.searchParams.get('state') ?? '').add(authorize.searchParams.get('code_challenge') ?? '')
    await finish()
  }
  for (const form of world.provider.forms) seen.add(form.get('code_verifier') ?? '')
  t.equal(seen.size, 15)
})

await test('GET /auth/signup asks the provider for registration; settings add app_id and scopes to both flows', async (t) => {
  const world = await startWorld(t, {
    provider: scripted,
    settings: { LEGACY_APP_ID: '1089', OAUTH_SCOPE: 'trade read' },
  })
  const { authorize } = await world.startLogin('/auth/signup')
  t.match(Object.fromEntries(authorize.searchParams), {
    prompt: 'registration',
    app_id: '1089',
    scope: 'trade read',
  })
  const login = await world.startLogin()
  t.notOk(login.authorize.searchParams.has('prompt'))
  t.equal(login.authorize.searchParams.get('app_id'), '1089')
})

await test('GET /auth/login: the query and headers of a browser reach neither the authorize URL nor a redirect', async (t) => {
  const { server, startLogin } = await startWorld(t, { provider: scripted, settings: { TRUST_PROXY: '1' } })
  const usual = [...(await startLogin()).authorize.searchParams.keys()].sort()
  const query =
    'scope=admin&client_id=evil&redirect_uri=https://evil.example&state=fixed&prompt=none&app_id=9&utm_source=x' +
    '&sidc=11111111-1111-1111-1111-111111111111&response_type=token&code_challenge=x&__proto__=x&__proto__[a]=b&a[]=1' +
    `&constructor=x&nonce=${'n'.repeat(8000)}`
  const forwardedHeaders = {
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    forwarded: 'host=evil.example',
  }
  for (const headers of [{}, { host: 'evil.example' }, forwardedHeaders]) {
    const start = await raw(`${server.url}/auth/login?${query}`, headers)
    t.equal(start.status, 303)
    const address = new URL(start.location)
    t.same([...address.searchParams.keys()].sort(), usual)
    t.equal(address.searchParams.get('redirect_uri'), `${server.url}/auth/callback`)
    t.equal(address.searchParams.get('client_id'), 'test-client')
    t.not(address.searchParams.get('state'), 'fixed')
    const back = await raw(`${server.url}/auth/callback?error=access_denied`, headers)
    t.equal(back.location, `${server.url}/?auth_error=access_denied`)
  }
  const huge = await raw(`${server.url}/auth/login?return_to=/${'x'.repeat(100_000)}`, {})
  t.equal(huge.status, 431, 'headers of this size are refused')
})

await test('GET /auth/login, /auth/signup and /auth/callback: 403 for a request that is no navigation', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true })
  const { server } = world
  const { state } = await world.startLogin()
  const count = await loginRecordCounter(t, world)
  const before = await count()
  const { cookie } = world
  for (const headers of [
    { 'sec-fetch-dest': 'image', 'sec-fetch-mode': 'no-cors', 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-dest': 'iframe', 'sec-fetch-mode': 'navigate' },
    { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors' },
    { 'sec-fetch-dest': 'serviceworker' },
    { 'sec-fetch-dest': 'document', 'sec-purpose': 'prefetch' },
    { 'sec-fetch-dest': 'document', 'sec-purpose': 'prefetch;prerender' },
  ]) {
    for (const path of ['/auth/login', '/auth/signup', `/auth/callback?code=x&state=${state}`]) {
      const response = await raw(server.url + path, { ...headers, cookie })
      t.equal(response.status, 403, `${JSON.stringify(headers)} ${path}`)
      t.match(response.body, /"code":"navigation_required"/)
      t.same(response.setCookie, [])
    }
  }
  t.equal(await count(), before, 'nothing was stored')
  t.equal(world.provider.forms.length, 0)
  const arrival = await world.browser.navigate(`${server.url}/auth/callback?code=x&state=${state}`)
  t.equal(arrival.url.href, `${server.url}/`, 'the refused callbacks did not use up the login')
})

await test('Requests that start no login create neither a cookie nor a record', async (t) => {
  const { server, storeClient } = await startWorld(t, { provider: scripted, redis: true })
  const client = await storeClient()
  const calls = ['/api/v1/nothing', '/api/trading/v1/options/accounts']
  for (const path of ['/auth/session', '/', ...calls, '/auth/callback', '/auth/callback?code=x&state=y']) {
    t.same((await raw(server.url + path, { 'x-csrf': '1' })).setCookie, [], path)
  }
  t.equal((await raw(`${server.url}/auth/signup?utm_source=x`, {}, 'HEAD')).status, 200)
  t.equal(await client.dbSize(), 0)
})

await test('GET /auth/login and /auth/signup: AUTH_STARTS_PER_MINUTE limits each address over all instances', async (t) => {
  const settings = { AUTH_STARTS_PER_MINUTE: '5', TRUST_PROXY: '1' }
  const world = await startWorld(t, { provider: scripted, redis: true, settings })
  const other = await world.instance()
  const startFrom = async (url: string, address: string, path: string): Promise<string> => {
    const { location } = await raw(url + path, { 'x-forwarded-for': address })
    return location.startsWith(world.provider.url) ? 'started' : location.slice(world.server.url.length)
  }
  const login = '/auth/login?return_to=/chart'
  for (let count = 0; count < 5; count++) {
    const { url } = count % 2 === 0 ? world.server : other
    t.equal(await startFrom(url, '2001:db8::1', count === 0 ? '/auth/signup' : login), 'started')
  }
  const limited = '/?auth_error=try_later&flow=login&return_to=%2Fchart'
  t.equal(await startFrom(other.url, '2001:db8::ffff', login), limited, 'the same /64')
  t.equal(
    await startFrom(world.server.url, '2001:db8::1', '/auth/signup'),
    '/?auth_error=try_later&flow=signup&return_to=%2F',
  )
  t.equal(await startFrom(world.server.url, '2001:db8:0:1::1', login), 'started', 'another /64')
  t.equal(await startFrom(world.server.url, '192.0.2.1', login), 'started')
  const refused = await raw(world.server.url + login, { 'x-forwarded-for': '2001:db8::2' })
  t.same(refused.setCookie, [])
  const back = await raw(`${other.url}/auth/callback?error=access_denied`, {
    'x-forwarded-for': '2001:db8::1',
  })
  t.match(back.location, /auth_error=access_denied/, 'a callback is not counted')
  const client = await world.storeClient()
  const ttl = await client.pTTL('bff:1:starts:2001:db8:0:0::/64')
  t.ok(ttl > 0 && ttl <= 60_000, 'the count expires after a minute')
})

await test('GET /auth/login: auth_error=try_later while the store is down; the process itself then counts starts', async (t) => {
  const settings = { AUTH_STARTS_PER_MINUTE: '2' }
  const { server, redis } = await startWorld(t, { provider: scripted, redis: true, settings })
  await redis?.close()
  for (let count = 0; count < 4; count++) {
    const response = await raw(`${server.url}/auth/login?return_to=/a`, {})
    t.equal(response.location, `${server.url}/?auth_error=try_later&flow=login&return_to=%2Fa`)
    t.same(response.setCookie, [])
  }
  const reasons = server.log.filter(({ audit }) => audit === 'login_not_started').map(({ reason }) => reason)
  t.same(reasons, ['store', 'store', 'limit', 'limit'])
})

await test('GET /auth/login: AUTH_STARTS_PER_MINUTE=0 sets no limit', async (t) => {
  const world = await startWorld(t, { provider: scripted, settings: { AUTH_STARTS_PER_MINUTE: '0' } })
  for (let count = 0; count < 40; count++) {
    const { location } = await raw(`${world.server.url}/auth/login`, {})
    t.ok(location.startsWith(world.provider.url))
  }
})

await test('DEV_INSECURE_COOKIES=1 sets the login and session cookies without Secure', async (t) => {
  const world = await startWorld(t, { provider: scripted, settings: { DEV_INSECURE_COOKIES: '1' } })
  await (await world.startLogin()).finish()
  t.same(
    world.browser.named('').map(({ name, secure }) => [name.slice(0, 6), secure]),
    [
      ['login-', false],
      ['sessio', false],
    ],
  )
})
