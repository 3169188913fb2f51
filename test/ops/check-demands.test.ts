import type { RequestListener } from 'node:http'
import { test, type Test } from 'tap'
import type { ProviderOptions } from '../../sandbox/provider.ts'
import { readConfig } from '../../src/config/config.ts'
import { checkProvider } from '../../src/ops/check-provider.ts'
import { newClientKey } from '../support/login/client-keys.ts'
import { json, tokenEndpoint } from '../support/login/token-endpoint.ts'
import { httpServer } from '../support/server/http-server.ts'
import { ALONE } from '../support/server/settings.ts'
import { testProvider } from '../support/parts.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { exactly } from '../support/exactly.ts'

const PUBLIC = { token_endpoint_auth_method: 'none' } as const
const ON = { enabled: true }
/** The sandbox's provider has pages of its own. */
const PAGES = { devInteractions: { enabled: false } }

/** What `--check` says about a provider: setting, result, message and advice. */
async function check(settings: Record<string, string>): Promise<string[]> {
  const results = await checkProvider(readConfig({ ...ALONE, ...settings }).oauth)
  return results.map(({ setting, is, message, advice = '' }) => `${setting} ${is}: ${message} | ${advice}`)
}

const callback = (query: string): string => `${ALONE.PUBLIC_URL}/auth/callback?${query}`

async function failures(settings: Record<string, string>): Promise<string[]> {
  return (await check(settings)).filter((line) => !/^\w+ ok: /.test(line))
}

/** A real provider, and settings for it. */
async function settingsOf(t: Test, options: Partial<ProviderOptions> = {}): Promise<Record<string, string>> {
  const provider = await testProvider(t, ALONE.PUBLIC_URL, { clientId: ALONE.CLIENT_ID, ...options })
  return { AUTH_URL: provider.url, ISSUER: provider.url }
}

/** A provider that is only an authorization endpoint, which responds like this; everything else is 404. */
async function authorizationEndpoint(t: Test, respond: RequestListener): Promise<Record<string, string>> {
  return { AUTHORIZATION_URL: `${await httpServer(t, respond)}/authorize` }
}

await test('--check fails for a client that must push its requests until PAR_URL is set', async (t) => {
  const settings = await settingsOf(t, {
    client: { ...PUBLIC, require_pushed_authorization_requests: true },
    library: { features: { ...PAGES, pushedAuthorizationRequests: ON } },
  })
  t.match(
    await failures(settings),
    exactly(
      /^AUTH_URL failed: .* every login fails \(invalid_request: Pushed Authorization Request must be used\) .* set PAR_URL/,
    ),
  )
  t.same(await failures({ ...settings, PAR_URL: `${settings['AUTH_URL']}/oauth2/par` }), [])
})

await test('--check fails for a client that must sign its requests, pushed or not, and for a provider that demands it', async (t) => {
  const client = { ...PUBLIC, require_signed_request_object: true }
  const features = { ...PAGES, pushedAuthorizationRequests: ON, requestObjects: ON }
  const settings = await settingsOf(t, { client, library: { features } })
  const demand = /every login fails.* invalid_request: Request Object must be used by this client .*not supported/
  const [plain, pushed] = [
    await failures(settings),
    await failures({ ...settings, PAR_URL: `${settings['AUTH_URL']}/oauth2/par` }),
  ]
  t.equal(plain.length, 1)
  t.match(
    plain[0],
    /^AUTH_URL failed: .*\(invalid_request: Request Object must be used by this client\).*not supported/,
  )
  t.equal(pushed.length, 1)
  t.match(pushed[0], /^PAR_URL failed: /)
  t.match(pushed[0], demand)
  const all = { requestObjects: { enabled: true, requireSignedRequestObject: true } }
  const demanding = await settingsOf(t, { library: { features: { ...PAGES, ...all } } })
  t.match(
    await check({ ...demanding, DISCOVERY: 'true' }),
    exactly(/^DISCOVERY failed: .* \(require_signed_request_object\)/),
  )
})

await test('--check says that it cannot see whether a client must use DPoP, and fails where the provider says so', async (t) => {
  const settings = await settingsOf(t, {
    client: { ...PUBLIC, dpop_bound_access_tokens: true },
    library: { features: { ...PAGES, dPoP: ON } },
  })
  const lines = await check(settings)
  t.same(
    lines.filter((line) => !/ ok: /.test(line)),
    [],
  )
  t.match(lines[0], /^AUTH_URL ok: .*No check can see .*DPoP/)

  const endpoint = await tokenEndpoint(t)
  for (const [behaviour, code] of [
    [json({ error: 'invalid_dpop_proof', error_description: 'a proof is missing' }, 400), 'invalid_dpop_proof'],
    [
      json('', 401, {
        'www-authenticate': 'Basic realm="x", DPoP error="use_dpop_nonce", error_description="a proof is missing"',
      }),
      'use_dpop_nonce',
    ],
    [
      json({}, 400, {
        'www-authenticate': 'DPoP algs="ES256", error="use_dpop_nonce", error_description="a proof is missing"',
      }),
      'use_dpop_nonce',
    ],
  ] as const) {
    endpoint.behaviour = behaviour
    t.match(
      await failures({ AUTH_URL: endpoint.url }),
      exactly(
        new RegExp(
          `^AUTH_URL failed: .*\\(DPoP\\), so every login fails: the provider returned ${code}: a proof is missing`,
        ),
      ),
    )
  }
  endpoint.behaviour = json('', 401, { 'www-authenticate': 'Bearer error="use_dpop_nonce"' })
  t.match(
    await failures({ AUTH_URL: endpoint.url }),
    exactly(/refuses this client \(invalid_client\)/),
    'not a challenge for DPoP',
  )
})

await test('--check fails for a redirect address that is not registered, and for one that is refused with a page', async (t) => {
  const settings = await settingsOf(t, { redirectUris: ['http://localhost:1/elsewhere'] })
  t.match(
    await failures(settings),
    exactly(
      /^AUTH_URL failed: .* every login fails \(status 400\) .*PUBLIC_URL \+ \/auth\/callback/,
      /^ISSUER warning/,
    ),
  )
})

await test('--check asks as a login does where the provider refuses prompt=none, and reads refusals on pages of the provider', async (t) => {
  const prompts: (string | null)[] = []
  let respond: RequestListener | undefined
  const { AUTHORIZATION_URL = '' } = await authorizationEndpoint(t, (request, response) => respond?.(request, response))
  const endpoint = await tokenEndpoint(t)
  endpoint.behaviour = json({ error: 'invalid_grant' }, 400)
  const settings = { AUTH_URL: endpoint.url, AUTHORIZATION_URL, AUTHORIZATION_PARAMS: 'prompt=consent&audience=api' }
  const outcome = async (
    behaviour: (prompt: string | null) => [status: number, location?: string],
  ): Promise<string> => {
    prompts.length = 0
    respond = ({ url = '' }, response) => {
      const { searchParams } = new URL(`http://provider${url}`)
      t.equal(searchParams.get('response_type'), 'code')
      prompts.push(searchParams.get('prompt'))
      const [status, location] = behaviour(searchParams.get('prompt'))
      response.writeHead(status, location === undefined ? {} : { location }).end()
    }
    return (await check(settings)).find((line) => line.startsWith('AUTHORIZATION_URL ')) ?? ''
  }
  t.match(await outcome(() => [302, callback('error=login_required')]), /^AUTHORIZATION_URL ok: .* accepts/)
  t.same(prompts, ['none'], 'nothing more is asked')
  t.match(await outcome(() => [302, callback('code=a-code')]), / ok: .* accepts/)
  t.match(await outcome(() => [302, '/login']), / ok: .* shows a page of its own/)
  t.same(prompts, ['none'])
  t.match(
    await outcome((prompt) => (prompt === 'none' ? [302, callback('error=invalid_request')] : [200])),
    / ok: .* shows a page of its own/,
  )
  t.same(prompts, ['none', 'consent'], 'the prompt of the settings')
  t.match(
    await outcome(() => [302, callback('error=invalid_scope&error_description=%1b[31mno%0a')]),
    /failed: .*\(invalid_scope: {2}\[31mno \)/,
  )
  t.match(await outcome(() => [302, '/error?error=invalid_client']), /failed: .*\(invalid_client\)/)
  t.match(await outcome(() => [500]), /failed: .*\(status 500\)/)
  t.match(await outcome(() => [403]), /warning: .* does not say .*\(status 403\).*Try a login/)
  const away = { ...settings, AUTHORIZATION_URL: 'http://127.0.0.1:1/authorize' }
  t.ok((await check(away)).some((line) => /^AUTHORIZATION_URL warning: .* cannot be reached from here/.test(line)))
})

await test("--check names the difference between this machine's clock and the provider's, and does not blame the key for it", async (t) => {
  const key = newClientKey('P-256')
  const now = Date.now.bind(Date)
  const ahead = timeAhead(t)
  const endpoint = await tokenEndpoint(t)
  // As a provider with another clock sees it. The Date of its responses is not set ahead with that of this machine.
  endpoint.behaviour = (request, response, form) => {
    const [, claims = ''] = form.get('client_assertion')?.split('.') ?? []
    const { exp, nbf } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number; nbf: number }
    const isValid = exp > now() / 1000 && nbf <= now() / 1000 + 15
    json({ error: isValid ? 'invalid_grant' : 'invalid_client' }, isValid ? 400 : 401)(request, response, form)
  }
  const settings = { AUTH_URL: endpoint.url, ISSUER: endpoint.url, CLIENT_AUTH: 'private_key_jwt', CLIENT_KEY: key.pem }
  const withKey = async (): Promise<string> => (await check(settings)).slice(0, 2).join('\n')
  const without = async (): Promise<string[]> => failures({ AUTH_URL: endpoint.url, CLIENT_SECRET: 'x' })
  t.match(await withKey(), /^clock ok: .*\([01] s apart/m)
  ahead(20_000)
  t.match(
    await withKey(),
    /^AUTH_URL failed: .* but the clock of this machine is (19|20|21) s ahead, so the keys may be right/,
  )
  t.match(await withKey(), /^clock ok: .*\((19|20|21) s apart, 30 s are tolerated/m)
  ahead(-140_000)
  t.match(await withKey(), /^AUTH_URL failed: .*is (119|120|121) s behind, .*synchronize the clocks first/)
  t.match(await withKey(), /^clock warning: .*the clock of this machine is (119|120|121) s behind/m)
  endpoint.behaviour = json({ error: 'invalid_client' }, 401)
  t.match(
    await without(),
    exactly(/refuses this client \(invalid_client\) \|/, /^clock warning/),
    'a secret knows no time',
  )
})

await test('--check does not take a key for accepted because the provider is too busy to look at it', async (t) => {
  const endpoint = await tokenEndpoint(t)
  const keys = [newClientKey('P-256'), newClientKey('P-384')].map(({ pem }) => pem).join('')
  const settings = { AUTH_URL: endpoint.url, ISSUER: endpoint.url, CLIENT_AUTH: 'private_key_jwt', CLIENT_KEY: keys }
  endpoint.behaviour = (request, response, form) => {
    const isFirst = endpoint.forms.length === 1
    json({ error: 'invalid_client' }, isFirst ? 401 : 429)(request, response, form)
  }
  t.match(
    (await check(settings))[0],
    /^AUTH_URL failed: .* refuses this client \(invalid_client\) with kid .* and with kid /,
  )
})

await test('--check compares no clock with a response from a cache, or without a date', async (t) => {
  const endpoint = await tokenEndpoint(t)
  endpoint.behaviour = json({ error: 'invalid_grant' }, 400)
  for (const headers of [{ age: '7', date: new Date(0).toUTCString() }, { date: 'yesterday' }]) {
    endpoint.pageHeaders = headers
    t.match((await check({ AUTH_URL: endpoint.url }))[1], /^clock ok: .* names no date/)
  }
  endpoint.pageHeaders = { date: new Date(Date.now() - 7_200_000).toUTCString() }
  t.match((await check({ AUTH_URL: endpoint.url }))[1], /^clock warning: .* is 7\d\d\d s ahead/)
})
