import { test } from 'tap'
import { rawUpstream } from '../support/upstream/raw-upstream.ts'
import { logOut } from '../support/sockets/relay-world.ts'
import { json, logInThere, loginWorld, sessionState, tokenEndpoint, tokens } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'

await test('A token response with an empty refresh token has none, and a list of scopes is read as one text', async (t) => {
  const world = await loginWorld(t, { settings: { AUTH_STARTS_PER_MINUTE: '0' } })
  const { browser, endpoint, server } = world
  const odd: [Record<string, unknown>, string][] = [
    [{ scope: ['trade', 'wallets'] }, 'trade wallets'],
    [{ scope: [] }, 'trade account_manage'],
    [{ scope: '' }, 'trade account_manage'],
    [{ scope: null }, 'trade account_manage'],
  ]
  for (const [response, scope] of odd) {
    endpoint.behaviour = tokens({ expires_in: 600, refresh_token: '', ...response })
    t.equal((await logInThere(world)).url.search, '')
    const state = await sessionState(browser, server.url)
    t.equal(state['scope'], scope)
    t.ok(Number(state['expires_at']) - Number(state['now']) <= 600, 'the session ends with its only token')
  }
  endpoint.behaviour = tokens({ scope: [1] })
  t.match((await logInThere(world)).url.search, /auth_error=login_failed/)
})

await test('A refresh that returns an empty refresh token keeps the old one', async (t) => {
  const upstream = await rawUpstream(t)
  const world = await loginWorld(t, { settings: { API_URL: upstream.url } })
  const { browser, endpoint, server } = world
  endpoint.behaviour = tokens({ expires_in: 0.001, refresh_token: 'the-refresh-token' })
  await logInThere(world)
  browser.page = new URL(server.url)
  endpoint.behaviour = tokens({ expires_in: 0.001, refresh_token: '', access_token: 'the-second-token' })
  for (let times = 0; times < 2; times++) {
    t.equal((await browser.fetch('/api/account/v1/nickname', { headers: { 'x-csrf': '1' } })).status, 200)
  }
  t.same(
    endpoint.forms.slice(1).map((form) => form.get('refresh_token')),
    ['the-refresh-token', 'the-refresh-token'],
  )
})

await test('access_denied of the token endpoint is not the user who cancelled; unauthorized_client is an alarm', async (t) => {
  const world = await loginWorld(t)
  for (const [status, error, expected, level] of [
    [403, 'access_denied', 'login_failed', 40],
    [400, 'access_denied', 'login_failed', 40],
    [400, 'unauthorized_client', 'invalid_client', 50],
    [403, 'unauthorized_client', 'invalid_client', 50],
  ] as const) {
    world.endpoint.behaviour = json({ error }, status)
    t.match((await logInThere(world)).url.search, `auth_error=${expected}`)
    t.equal(world.server.log.findLast(({ audit }) => audit === 'login_failed')?.['level'], level, error)
  }
})

await test('POST /auth/logout: the refresh token is revoked first, with hints; failures are logged with status and session', async (t) => {
  const revocation = await tokenEndpoint(t)
  const settings = { REVOCATION_URL: `${revocation.url}/revoke`, AUTH_STARTS_PER_MINUTE: '0' }
  const world = await loginWorld(t, { settings })
  const { browser, endpoint, server } = world
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
  endpoint.behaviour = tokens({ refresh_token: 'the-refresh-token' })
  await logInThere(world)
  t.equal((await logOut(browser)).status, 204, 'the logout does not wait')
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
  t.match(failures(), [
    { level: 40, session, token: 'refresh_token', status: 503 },
    { level: 40, session, token: 'access_token', status: 400, cause: { message: /unsupported_token_type/ } },
  ])
  t.notMatch(JSON.stringify(server.log), /the-(refresh|access)-token/)
})
