import { test, type Test } from 'tap'
import {
  json,
  sessionState,
  tokenEndpoint,
  tokens,
  scripted,
  type TokenEndpoint,
} from '../support/login/token-endpoint.ts'
import { failureCount } from '../support/telemetry/lines.ts'
import { until } from '../support/time/until.ts'
import { rawUpstream } from '../support/upstream/raw-upstream.ts'
import { startWorld, type World } from '../support/world.ts'
import { exactly } from '../support/exactly.ts'

/** A world in which logins start without limit. */
async function unlimitedWorld(t: Test): Promise<World<'none', TokenEndpoint>> {
  return startWorld(t, { provider: scripted, settings: { AUTH_STARTS_PER_MINUTE: '0' } })
}

await test('The exchange sends exactly the form that docs/upstream.md describes', async (t) => {
  const world = await unlimitedWorld(t)
  const { provider, server } = world
  const { authorize, finish } = await world.startLogin()
  await finish()
  const [form] = provider.forms
  const { code_verifier: verifier, ...rest } = Object.fromEntries(form ?? [])
  t.same(rest, {
    grant_type: 'authorization_code',
    client_id: 'test-client',
    code: 'the-authorization-code',
    redirect_uri: `${server.url}/auth/callback`,
  })
  t.match(verifier, /^[\w~.-]{43,128}$/)
  t.match(provider.headers[0], {
    'content-type': /^application\/x-www-form-urlencoded$/,
    authorization: undefined,
    cookie: undefined,
  })
  const digest = await crypto.subtle.digest('SHA-256', Buffer.from(verifier ?? ''))
  t.equal(authorize.searchParams.get('code_challenge'), Buffer.from(digest).toString('base64url'))
})

await test('Every request to the token endpoint opens its own connection, so that none goes to an outdated address', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  const connections: unknown[] = []
  const respond = tokens()
  world.provider.behaviour = (request, response, form) => {
    connections.push(request.socket)
    return respond(request, response, form)
  }
  for (let times = 0; times < 3; times++) await world.logIn()
  t.equal(new Set(connections).size, 3)
  t.same(new Set(world.provider.headers.map(({ connection }) => connection)), new Set(['close']))
})

await test('A session lives as long as its token: expires_in, one hour if that is unusable, or the absolute limit', async (t) => {
  const world = await unlimitedWorld(t)
  const { browser, provider, server } = world
  const lifetimeSeconds = async (tokenResponse: Record<string, unknown>): Promise<number> => {
    provider.behaviour = tokens(tokenResponse)
    await world.logIn()
    const { now, expires_at: expiresAt, idle_expires_at: idle } = await sessionState(browser, server.url)
    t.ok(Number(idle) <= Number(expiresAt))
    // Both are rounded down to whole seconds, so their difference may be off by one.
    return Math.round((Number(expiresAt) - Number(now)) / 10) * 10
  }
  const warnings = (): number => failureCount(server.log, 'the provider named no usable expires_in')
  t.equal(await lifetimeSeconds({ expires_in: 600 }), 600)
  t.equal(await lifetimeSeconds({ expires_in: '600' }), 600, 'a numeric string')
  t.equal(await lifetimeSeconds({ expires_in: 600.5 }), 600)
  t.equal(await lifetimeSeconds({ expires_in: 30 * 86_400 }), 28_800, 'the session ends first')
  t.equal(warnings(), 0)
  const odd = [undefined, null, 0, -1, '', ' ', 'soon', true, [600], {}, 30 * 86_400 + 1, '1e400']
  for (const value of odd) t.equal(await lifetimeSeconds({ expires_in: value }), 3600, JSON.stringify(value))
  await until(() => warnings() === odd.length)
  t.equal(await lifetimeSeconds({ expires_in: 600, refresh_token: 'r' }), 28_800, 'with a refresh token')
  t.equal(await lifetimeSeconds({ expires_in: 600, refresh_token: null, id_token: 'no.jwt' }), 600)
})

await test('A login works with tokens in a 201, and with a byte order mark before them', async (t) => {
  const { browser, provider, server, logIn } = await unlimitedWorld(t)
  const body = { access_token: 'the-access-token', expires_in: 600, token_type: 'Bearer' }
  for (const behaviour of [
    json(body, 201),
    json(`\uFEFF${JSON.stringify(body)}`),
    json(`\uFEFF${JSON.stringify(body)}`, 201),
  ]) {
    provider.behaviour = behaviour
    t.equal((await logIn()).url.search, '')
    t.match(await sessionState(browser, server.url), { authenticated: true })
    await browser.fetch(`${server.url}/auth/logout`, { method: 'POST', headers: { 'x-csrf': '1' } })
  }
})

await test('A lifetime with a fraction of a millisecond works with Redis, which takes whole ones only', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true })
  world.provider.behaviour = tokens({ expires_in: 599.987654 })
  const { url } = await world.logIn()
  t.notMatch(url.href, /auth_error/)
  t.match(await sessionState(world.browser, world.server.url), { authenticated: true })
})

await test('The log gives the error description of a failed login, cannot be forged and holds no secret', async (t) => {
  const world = await unlimitedWorld(t)
  const { browser, provider, server } = world
  const description = 'nice try\n{"level":60,"msg":"forged"} of the-authorization-code '.repeat(20)
  const { state, finish } = await world.startLogin()
  await finish({ error: 'access_denied', code: 'the-authorization-code', error_description: description })
  const line = server.log.findLast(({ audit }) => audit === 'login_failed')
  t.match(line?.['description'], 'nice try\n{"level":60')
  t.ok(String(line?.['description']).length <= 500)
  await (
    await world.startLogin()
  ).finish({
    error: 'access_denied',
    code: 'the-authorization-code',
    error_description: `${'x'.repeat(490)}the-authorization-code`,
  })
  t.notMatch(server.log.findLast(({ audit }) => audit === 'login_failed')?.['description'], 'xthe-', 'not even a part')
  t.notOk(server.log.some(({ msg }) => msg === 'forged'))

  await (await world.startLogin(`/auth/login?x=${encodeURIComponent('\n{"msg":"forged"}')}`)).finish()
  const [session] = browser.named('__Host-session')
  await browser.fetch(`${server.url}/auth/session`)
  const secrets = [
    state,
    'the-authorization-code',
    'the-access-token',
    ...browser.named('__Host-').map(({ value }) => value.split('.')[0] ?? ''),
    ...provider.forms.map((form) => form.get('code_verifier') ?? ''),
  ]
  t.ok(session)
  const log = server.log.map((each) => JSON.stringify(each)).join('\n')
  for (const secret of secrets) t.notOk(log.includes(secret), secret)
})

await test('The scope of a session is that of the token response, as a text or a list, or else the requested one; an empty refresh token is none', async (t) => {
  const world = await unlimitedWorld(t)
  const { browser, provider, server } = world
  const odd: [Record<string, unknown>, string][] = [
    [{ scope: 'trade' }, 'trade'],
    [{ scope: ['trade', 'wallets'] }, 'trade wallets'],
    [{}, 'trade account_manage'],
    [{ scope: [] }, 'trade account_manage'],
    [{ scope: '' }, 'trade account_manage'],
    [{ scope: null }, 'trade account_manage'],
  ]
  for (const [response, scope] of odd) {
    provider.behaviour = tokens({ expires_in: 600, refresh_token: '', ...response })
    t.equal((await world.logIn()).url.search, '')
    const state = await sessionState(browser, server.url)
    t.equal(state['scope'], scope)
    t.ok(Number(state['expires_at']) - Number(state['now']) <= 600, 'the session ends with its only token')
  }
  provider.behaviour = tokens({ scope: [1] })
  t.match((await world.logIn()).url.search, /auth_error=login_failed/)
})

await test('A refresh that returns an empty refresh token keeps the old one', async (t) => {
  const upstream = await rawUpstream(t)
  const world = await startWorld(t, { provider: scripted, settings: { API_URL: upstream.url } })
  const { browser, provider, server } = world
  provider.behaviour = tokens({ expires_in: 0.001, refresh_token: 'the-refresh-token' })
  await world.logIn()
  browser.page = new URL(server.url)
  provider.behaviour = tokens({ expires_in: 0.001, refresh_token: '', access_token: 'the-second-token' })
  for (let times = 0; times < 2; times++) {
    t.equal((await browser.fetch('/api/account/v1/nickname', { headers: { 'x-csrf': '1' } })).status, 200)
  }
  t.same(
    provider.forms.slice(1).map((form) => form.get('refresh_token')),
    ['the-refresh-token', 'the-refresh-token'],
  )
})

await test('POST /auth/logout: the refresh token is revoked first, with hints; failures are logged with status and session', async (t) => {
  const revocation = await tokenEndpoint(t)
  const settings = { REVOCATION_URL: `${revocation.url}/revoke`, AUTH_STARTS_PER_MINUTE: '0' }
  const { provider, server, logIn, logOut } = await startWorld(t, { provider: scripted, settings })
  const hold = Promise.withResolvers<void>()
  let under = 0
  let most = 0
  revocation.behaviour = async (request, response, form) => {
    most = Math.max(most, ++under)
    if (form.get('token_type_hint') === 'refresh_token') await hold.promise
    under--
    const isRefresh = form.get('token_type_hint') === 'refresh_token'
    await json(isRefresh ? 'busy' : { error: 'unsupported_token_type' }, isRefresh ? 503 : 400)(request, response, form)
  }
  provider.behaviour = tokens({ refresh_token: 'the-refresh-token' })
  await logIn()
  t.equal((await logOut()).status, 204, 'the logout does not wait')
  hold.resolve()
  const failures = () => server.log.filter(({ audit }) => audit === 'revocation_failed')
  await until(() => failures().length === 2, 'both failures are logged')
  t.same(
    revocation.forms.map((form) => [form.get('token'), form.get('token_type_hint'), form.get('client_id')]),
    [
      ['the-refresh-token', 'refresh_token', 'test-client'],
      ['the-access-token', 'access_token', 'test-client'],
    ],
  )
  t.equal(most, 1, 'one after the other')
  const session = server.log.find(({ audit }) => audit === 'session_ended')?.['session']
  t.match(session, /^[\w-]{10}$/)
  t.match(
    failures(),
    exactly(
      { level: 40, session, token: 'refresh_token', status: 503 },
      { level: 40, session, token: 'access_token', status: 400, cause: { message: /unsupported_token_type/ } },
    ),
  )
  t.notMatch(JSON.stringify(server.log), /the-(refresh|access)-token/)
})
