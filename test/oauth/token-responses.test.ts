import { test, type Test } from 'tap'
import { loginWorld, sessionState, startLogin, tokens, type LoginWorld } from '../support/login/token-endpoint.ts'
import { failureCount } from '../support/telemetry/lines.ts'
import { until } from '../support/time/until.ts'

/** A world in which logins start without limit. */
async function unlimitedWorld(t: Test): Promise<LoginWorld> {
  return loginWorld(t, { settings: { AUTH_STARTS_PER_MINUTE: '0' } })
}

await test('The exchange sends exactly the form that docs/upstream.md describes', async (t) => {
  const world = await unlimitedWorld(t)
  const { endpoint, server } = world
  const { authorize, finish } = await startLogin(world)
  await finish()
  const [form] = endpoint.forms
  const { code_verifier: verifier, ...rest } = Object.fromEntries(form ?? [])
  t.same(rest, {
    grant_type: 'authorization_code',
    client_id: 'test-client',
    code: 'the-authorization-code',
    redirect_uri: `${server.url}/auth/callback`,
  })
  t.match(verifier, /^[\w~.-]{43,128}$/)
  t.match(endpoint.headers[0], {
    'content-type': /^application\/x-www-form-urlencoded/,
    authorization: undefined,
    cookie: undefined,
  })
  const digest = await crypto.subtle.digest('SHA-256', Buffer.from(verifier ?? ''))
  t.equal(authorize.searchParams.get('code_challenge'), Buffer.from(digest).toString('base64url'))
})

await test('The exchange of a confidential client includes its secret, which is never logged', async (t) => {
  const world = await loginWorld(t, { settings: { CLIENT_SECRET: 'the-client-secret' } })
  await (await startLogin(world)).finish()
  t.equal(world.endpoint.forms[0]?.get('client_secret'), 'the-client-secret')
  t.notMatch(JSON.stringify(world.server.log), /the-client-secret/)
})

await test('Every request to the token endpoint opens its own connection, so that none goes to an outdated address', async (t) => {
  const world = await loginWorld(t)
  const connections: unknown[] = []
  const respond = tokens()
  world.endpoint.behaviour = (request, response, form) => {
    connections.push(request.socket)
    return respond(request, response, form)
  }
  for (let times = 0; times < 3; times++) await (await startLogin(world)).finish()
  t.equal(new Set(connections).size, 3)
  t.same(new Set(world.endpoint.headers.map(({ connection }) => connection)), new Set(['close']))
})

await test('A session lives as long as its token: expires_in, one hour if that is unusable, or the absolute limit', async (t) => {
  const world = await unlimitedWorld(t)
  const { browser, endpoint, server } = world
  const lifetimeSeconds = async (tokenResponse: Record<string, unknown>): Promise<number> => {
    endpoint.behaviour = tokens(tokenResponse)
    await (await startLogin(world)).finish()
    const { now, expires_at: expiresAt } = await sessionState(browser, server.url)
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

await test('The scope of a session is that of the token response, or else the requested one', async (t) => {
  const world = await unlimitedWorld(t)
  const { browser, endpoint, server } = world
  await (await startLogin(world)).finish()
  t.equal((await sessionState(browser, server.url))['scope'], 'trade account_manage')
  endpoint.behaviour = tokens({ scope: 'trade' })
  await (await startLogin(world)).finish()
  t.equal((await sessionState(browser, server.url))['scope'], 'trade')
})

await test('The log gives the error description of a failed login, cannot be forged and holds no secret', async (t) => {
  const world = await unlimitedWorld(t)
  const { browser, endpoint, server } = world
  const description = 'nice try\n{"level":60,"msg":"forged"} of the-authorization-code '.repeat(20)
  const { state, finish } = await startLogin(world)
  await finish({ error: 'access_denied', code: 'the-authorization-code', error_description: description })
  const line = server.log.findLast(({ audit }) => audit === 'login_failed')
  t.match(line?.['description'], 'nice try\n{"level":60')
  t.ok(String(line?.['description']).length <= 500)
  t.notOk(server.log.some(({ msg }) => msg === 'forged'))

  await (await startLogin(world, `/auth/login?x=${encodeURIComponent('\n{"msg":"forged"}')}`)).finish()
  const [session] = browser.named('__Host-session')
  await browser.fetch(`${server.url}/auth/session`)
  const secrets = [
    state,
    'the-authorization-code',
    'the-access-token',
    ...browser.named('__Host-').map(({ value }) => value.split('.')[0] ?? ''),
    ...endpoint.forms.map((form) => form.get('code_verifier') ?? ''),
  ]
  t.ok(session)
  const log = server.log.map((each) => JSON.stringify(each)).join('\n')
  for (const secret of secrets) t.notOk(log.includes(secret), secret)
})
