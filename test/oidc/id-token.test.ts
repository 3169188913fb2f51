import { test } from 'tap'
import { epoch, issuerKey, oidcWorld, sign, signShared, unsigned, type Claims } from '../support/login/oidc-world.ts'
import { isLoggedIn, sessionState, tokens } from '../support/login/token-endpoint.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'

/** A token of these parts, valid or not. */
const parts = (...texts: string[]): string => texts.map((text) => Buffer.from(text).toString('base64url')).join('.')

await test('GET /auth/callback: the ID token says whose session it is, and which claims the page sees', async (t) => {
  const world = await oidcWorld(t, {
    settings: { IDENTITY_CLAIMS: 'name,email,age,verified,largest,huge,address,missing,__proto__' },
  })
  const claims = {
    name: 'Ada',
    email: 'ada@secret.example',
    age: 36,
    verified: true,
    largest: '"'.repeat(1024),
    huge: 'x'.repeat(1025),
    address: {},
  }
  const { browser, arrival } = await world.user('ada', { ...claims, phone: '1', sid: 'at-the-provider' })
  t.equal(arrival.url.search, '')
  const state = await sessionState(browser, world.server.url)
  t.equal(state['subject'], `${world.issuer}#ada`)
  t.same(state['claims'], {
    name: 'Ada',
    email: 'ada@secret.example',
    age: 36,
    verified: true,
    largest: claims.largest,
  })
  t.notMatch(JSON.stringify(world.server.log), /secret\.example|at-the-provider/)
  const leftOut = await samplesOf(world.server.opsUrl, 'bff_identity_claims_left_out_total')
  t.same(
    leftOut,
    new Map([
      ['why="size"', 1],
      ['why="type"', 1],
    ]),
  )
})

await test('GET /auth/login: the nonce is new for each login, and in no cookie', async (t) => {
  const world = await oidcWorld(t)
  const browser = new JarBrowser()
  const nonces = new Set<string>()
  for (let times = 0; times < 3; times++) {
    const { authorize } = await world.visitor(browser).startLogin()
    t.match(authorize.searchParams.get('nonce'), /^[\w-]{43}$/)
    nonces.add(authorize.searchParams.get('nonce') ?? '')
  }
  t.equal(nonces.size, 3)
  const cookies = [...browser.cookies.values()].map(({ value }) => value).join(' ')
  for (const nonce of nonces) t.notOk(cookies.includes(nonce))
})

await test('GET /auth/callback: an ID token that is not valid fails the login, and nothing of it is logged', async (t) => {
  const world = await oidcWorld(t)
  const other = issuerKey('first')
  const wrong: Record<string, Claims> = {
    'a wrong nonce': { nonce: 'another' },
    'no nonce': { nonce: undefined },
    'another issuer': { iss: 'http://127.0.0.1:1' },
    'the issuer with a slash': { iss: `${world.issuer}/` },
    'another audience': { aud: 'other-client' },
    'audiences without azp': { aud: ['test-client', 'other'] },
    'audiences with another azp': { aud: ['test-client', 'other'], azp: 'other' },
    'another azp': { azp: 'other' },
    'an exp in the past': { exp: epoch(-40) },
    'no exp': { exp: undefined },
    'no iat': { iat: undefined },
    'no sub': { sub: undefined },
    'an empty sub': { sub: '' },
    'a long sub': { sub: 'x'.repeat(256) },
    'a long sid': { sid: 'x'.repeat(256) },
    'a sid that is a number': { sid: 1 },
  }
  const expectFailure = async (name: string, claims: Claims = {}): Promise<void> => {
    const { browser, arrival } = await world.user('ada', { email: 'ada@secret.example', ...claims })
    t.equal(arrival.url.searchParams.get('auth_error'), 'login_failed', name)
    t.notOk(await isLoggedIn(browser, world.server.url), name)
  }
  for (const [name, claims] of Object.entries(wrong)) await expectFailure(name, claims)
  const { idToken } = world
  const forms: Record<string, typeof idToken> = {
    'no ID token': async () => undefined,
    'alg none': async (claims) => unsigned(claims),
    'a shared secret': (claims) => signShared(world.key, claims),
    'the key of another': (claims) => sign(other, claims),
    'no token': async () => 'a.b.c',
    'broken claims': async () => parts('{"alg":"ES256"}', '{ada@secret.example', 'x'),
    // A parser quotes a text that begins like this.
    'claims that are no JSON': async () => parts('{"alg":"ES256"}', 'ada@secret.example', 'x'),
    'a header that is no JSON': async () => parts('ada@secret.example', '{}', 'x'),
  }
  for (const [name, form] of Object.entries(forms)) {
    world.idToken = form
    await expectFailure(name)
  }
  t.notMatch(JSON.stringify(world.server.log), /secret\.example/)
  world.idToken = idToken
  const { arrival, browser } = await world.user('x'.repeat(255), {
    aud: ['test-client', 'other'],
    azp: 'test-client',
    exp: epoch(-20),
  })
  t.equal(arrival.url.search, '', 'the clocks may differ by half a minute')
  const { subject } = await sessionState(browser, world.server.url)
  t.match(subject, /^http:\/\/127\.0\.0\.1:\d+\?[\w-]{43}$/, 'no subject is longer than others may be')
  t.equal((await world.postLogout(await world.logoutToken({ sub: 'x'.repeat(255) }))).status, 200)
  t.notOk(await isLoggedIn(browser, world.server.url))
})

await test('GET /auth/callback: an ID token whose sid and azp are null has neither', async (t) => {
  const world = await oidcWorld(t)
  const { browser, arrival } = await world.user('ada', { sid: null, azp: null })
  t.equal(arrival.url.search, '')
  t.equal((await world.postLogout(await world.logoutToken({ sub: 'ada', sid: undefined }))).status, 200)
  t.notOk(await isLoggedIn(browser, world.server.url))
})

await test('GET /auth/callback: with max_age in AUTHORIZATION_PARAMS the ID token must say that the user authenticated in time', async (t) => {
  const world = await oidcWorld(t, { settings: { AUTHORIZATION_PARAMS: 'max_age=300' } })
  for (const [authTime, result] of [
    [undefined, 'login_failed'],
    [epoch(-400), 'login_failed'],
    // The clocks may differ by half a minute.
    [epoch(-310), null],
    [epoch(), null],
  ] as const) {
    const { arrival } = await world.user('ada', { auth_time: authTime })
    t.equal(arrival.url.searchParams.get('auth_error'), result)
  }
})

await test('GET /auth/callback: max_age counts at the start of the login: one that takes 20 seconds may add these, and no more', async (t) => {
  const world = await oidcWorld(t, { settings: { AUTHORIZATION_PARAMS: 'max_age=300' } })
  const sleep = timeAhead(t)
  for (const [age, result] of [
    [340, null],
    [360, 'login_failed'],
  ] as const) {
    const login = await world.visitor().startLogin()
    const { searchParams } = login.authorize
    t.equal(searchParams.get('max_age'), '300')
    sleep(20_000)
    const claims = { sub: 'ada', nonce: searchParams.get('nonce'), auth_time: epoch(-age) }
    world.idToken = (usual) => sign(world.key, { ...usual, ...claims })
    const arrival = await login.finish()
    t.equal(arrival.url.searchParams.get('auth_error'), result, `an authentication ${age} seconds ago`)
  }
})

await test('GET /auth/callback: provider_unavailable without the keys, one request for them at a time, and a new key works', async (t) => {
  const world = await oidcWorld(t)
  const { keys } = world
  const away = keys.responses['/jwks']
  keys.responses['/jwks'] = (_request, response) => response.writeHead(500).end()
  const { arrival } = await world.user('ada')
  t.equal(arrival.url.searchParams.get('auth_error'), 'provider_unavailable')
  keys.responses['/jwks'] = away ?? (() => undefined)
  const before = keys.requests.length
  const logins = await Promise.all(Array.from({ length: 5 }, () => world.user('ada')))
  t.same(
    logins.map(({ arrival }) => arrival.url.search),
    ['', '', '', '', ''],
  )
  t.equal(keys.requests.length, before + 1, 'five logins, one request')
  world.key = issuerKey('second')
  world.publish(world.key)
  t.equal((await world.user('ada')).arrival.url.search, '', 'the provider has rotated its keys')
  t.equal(keys.requests.length, before + 2)
  world.key = issuerKey('third')
  world.publish(world.key)
  t.match((await world.user('ada')).arrival.url.search, /auth_error=login_failed/)
  t.equal(keys.requests.length, before + 2, 'an unknown key is looked for once a minute')
})

await test('A refresh whose ID token names another user or issuer ends the session; what else it says does not matter', async (t) => {
  const world = await oidcWorld(t)
  const { server, issuer, provider: endpoint } = world
  const revoked = (): string[] => endpoint.revoked
  const login = endpoint.behaviour
  const usual = { iss: issuer, aud: 'test-client', iat: epoch(), exp: epoch(300) }
  let refreshed: Claims | null = {}
  const issue = async (claims: Claims | null, token: string): Promise<Record<string, unknown>> => ({
    access_token: token,
    refresh_token: `refresh of ${token}`,
    expires_in: 0.001,
    id_token: claims === null ? null : await sign(world.key, claims),
  })
  endpoint.behaviour = async (request, response, form) => {
    if (form.get('grant_type') === 'refresh_token') {
      const claims = refreshed === null ? null : { ...usual, ...refreshed }
      return tokens(await issue(claims, 'a-new-token'))(request, response, form)
    }
    world.idToken = async (claims) => sign(world.key, claims)
    return login(request, response, form)
  }
  const call = async (browser: JarBrowser): Promise<number> => {
    browser.page = new URL(server.url)
    return (await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })).status
  }
  world.tokens = { refresh_token: 'the-first-refresh-token', expires_in: 0.001 }
  for (const [claims, status, lives] of [
    [{ sub: 'ada' }, 502, true],
    [null, 502, true],
    [{ sub: 'ada', exp: epoch(-300), nonce: 'that of the login', aud: 'another' }, 502, true],
    [{ sub: 'ada', iss: 'http://127.0.0.1:1' }, 401, false],
    [{ sub: 'eve' }, 401, false],
    [{}, 401, false],
  ] as const) {
    refreshed = claims
    const { browser } = await world.user('ada')
    t.equal(await call(browser), status, JSON.stringify(claims))
    t.equal(await isLoggedIn(browser, server.url), lives, JSON.stringify(claims))
  }
  const refusals = server.log.filter(({ audit }) => audit === 'refresh_refused')
  t.equal(refusals.length, 3)
  for (const refusal of refusals) t.match(refusal, { cause: { message: /not of this provider and user/ } })
  await until(
    () => revoked().filter((token) => token === 'a-new-token').length === 3,
    'tokens that are not used are revoked',
  )
})
