import { test } from 'tap'
import type { ProviderOptions } from '../../sandbox/provider.ts'
import { gated } from '../support/login/gated-provider.ts'
import { startWorld } from '../support/world.ts'
import { json, tokens, scripted } from '../support/login/token-endpoint.ts'
import { rawUpstream } from '../support/upstream/raw-upstream.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

const UNLIMITED = { AUTH_STARTS_PER_MINUTE: '0' }

await test('GET /auth/callback: what a real provider says to a client that should have used DPoP is in the log, and not in the address', async (t) => {
  const provider: Partial<ProviderOptions> = {
    client: { token_endpoint_auth_method: 'none', dpop_bound_access_tokens: true },
    library: { features: { devInteractions: { enabled: false }, dPoP: { enabled: true } } },
  }
  const { server, logIn } = await startWorld(t, { provider: gated(provider), upstream: 'sandbox', redis: true })
  const arrival = await logIn()
  t.match(arrival.url.search, /^\?auth_error=\w+&flow=login&return_to=%2F$/)
  const line = server.log.find(({ audit }) => audit === 'login_failed')
  // This provider tells a client no more than that.
  const description = 'grant request is invalid'
  t.match(line, {
    description,
    cause: {
      type: 'ProviderRefusal',
      code: 'invalid_grant',
      message: `the provider returned invalid_grant: ${description}`,
    },
  })
})

await test("GET /auth/callback: the log has the provider's description of a refused exchange, from a body or a DPoP challenge, without secrets", async (t) => {
  const { provider, server, logIn } = await startWorld(t, {
    provider: scripted,
    settings: { ...UNLIMITED, CLIENT_SECRET: 'the-client-secret' },
  })
  const failed = () => server.log.filter(({ audit }) => audit === 'login_failed')
  const challenge = 'DPoP error="use_dpop_nonce", error_description="a nonce is needed", algs="ES256"'
  for (const [behaviour, error, description, code] of [
    [
      json({ error: 'invalid_grant', error_description: 'the code is old' }, 400),
      'invalid_grant',
      'the code is old',
      'invalid_grant',
    ],
    [
      json({ error: 'invalid_dpop_proof', error_description: 'a proof is missing' }, 400),
      'login_failed',
      'a proof is missing',
      'invalid_dpop_proof',
    ],
    [json('', 401, { 'www-authenticate': challenge }), 'login_failed', 'a nonce is needed', 'use_dpop_nonce'],
    [
      json({ error: 'invalid_client', error_description: 'who?' }, 401, { 'www-authenticate': challenge }),
      'invalid_client',
      'who?',
      'invalid_client',
    ],
    [
      json('', 401, { 'www-authenticate': 'Basic realm="x", error="invalid_grant"' }),
      'invalid_client',
      undefined,
      'invalid_client',
    ],
    [json({ error: 'invalid_grant', error_description: ['x'] }, 400), 'invalid_grant', undefined, 'invalid_grant'],
    [json({ error: 'invalid_grant', error_description: 'in a 200' }), 'invalid_grant', 'in a 200', 'invalid_grant'],
    [
      json({ error: 'bad_verification_code', error_description: 'of a known site', access_token: null }),
      'login_failed',
      'of a known site',
      'bad_verification_code',
    ],
  ] as const) {
    provider.behaviour = behaviour
    t.match((await logIn()).url.searchParams.get('auth_error'), error)
    t.match(failed().at(-1), { error, cause: { code: `provider:${code}` } })
    t.equal(failed().at(-1)?.['description'], description)
  }
  provider.behaviour = tokens({ token_type: 'DPoP' })
  await logIn()
  t.match(failed().at(-1), { error: 'login_failed', cause: { message: /bound to a key \(DPoP\)$/ } })
  provider.behaviour = (request, response, form) => {
    const quoted = ['code', 'code_verifier', 'client_secret'].map((name) => form.get(name)).join('\n{"level":60} ')
    json({ error: 'invalid_grant', error_description: `not ${quoted} ${'x'.repeat(10_000)}` }, 400)(
      request,
      response,
      form,
    )
  }
  await logIn()
  const { description, cause } = (failed().at(-1) ?? {}) as { description?: string; cause?: Error }
  t.match(description, /^not … \{"level":60\} … \{"level":60\} … x{200,300}$/)
  t.ok((cause?.message.length ?? 501) <= 500)
})

await test('GET /auth/callback: an error of a link that is named like one of the system raises no alarm about this process', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  const login = await world.startLogin()
  await login.finish({ error: 'EMFILE' })
  const line = world.server.log.find(({ audit }) => audit === 'login_failed')
  t.match(line, { level: 40, cause: { message: 'the provider returned EMFILE' } })
  t.notOk(world.server.log.some(({ level }) => Number(level) >= 50))
})

await test('A refused refresh is logged with the description of the provider, and without the secrets that it quotes', async (t) => {
  const upstream = await rawUpstream(t)
  const client = { CLIENT_AUTH: 'client_secret_basic', CLIENT_SECRET: 'the/secret+of the client' }
  const world = await startWorld(t, { provider: scripted, settings: { API_URL: upstream.url, ...client } })
  const { browser, provider, server } = world
  provider.behaviour = tokens({ expires_in: 0.001, refresh_token: '1//the+refresh-token' })
  await world.logIn()
  browser.page = new URL(server.url)
  provider.behaviour = (request, response, form) => {
    const { authorization } = request.headers
    // Gateways quote a request as it came.
    const error_description = `${form.get('refresh_token')} is used up: ${String(form)} by ${authorization}`
    return json({ error: 'invalid_grant', error_description }, 400)(request, response, form)
  }
  const call = await browser.fetch('/api/account/v1/nickname', { headers: { 'x-csrf': '1' } })
  t.equal(call.status, 401)
  t.match(
    server.log.find(({ audit }) => audit === 'refresh_refused'),
    { cause: { code: 'provider:invalid_grant', message: /: … is used up: \S*refresh_token=…\S* by Basic …$/ } },
  )
})

await test('GET /auth/callback: a granted scope that lacks part of OAUTH_SCOPE is one warning an hour, however many logins there are', async (t) => {
  const { provider, server, logIn } = await startWorld(t, {
    provider: scripted,
    settings: { ...UNLIMITED, OAUTH_SCOPE: 'trade account_manage offline_access' },
  })
  const warnings = () => server.log.filter(({ msg }) => /granted less than OAUTH_SCOPE/.test(msg))
  for (const granted of [
    {},
    { scope: 'offline_access account_manage trade more' },
    { scope: 'trade account_manage', refresh_token: 'the-refresh-token' },
  ]) {
    provider.behaviour = tokens(granted)
    await logIn()
  }
  t.same(warnings(), [], 'nothing is missing')
  provider.behaviour = tokens({ scope: 'trade', refresh_token: 'the-refresh-token' })
  for (let times = 0; times < 3; times++) t.equal((await logIn()).url.search, '')
  await until(() => warnings().length > 0)
  t.match(warnings(), exactly({ level: 40, missing: ['account_manage'], count: 1 }))
  t.equal(warnings().length, 1)
  provider.behaviour = tokens({ scope: 'trade account_manage' })
  await logIn()
  t.match(warnings().at(-1), { missing: ['offline_access'] }, 'another lack has a line of its own')
})
