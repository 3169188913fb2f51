import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { checkProvider } from '../../src/ops/check-provider.ts'
import { newClientKey } from '../support/login/client-keys.ts'
import { document, metadataServer, OIDC_PATH } from '../support/login/metadata-server.ts'
import { ALONE } from '../support/server/settings.ts'
import { testProvider } from '../support/parts.ts'
import { html, json, tokenEndpoint } from '../support/login/token-endpoint.ts'

/** The results of `--check` about the provider: setting, result and message. */
async function check(settings: Record<string, string>): Promise<string[]> {
  const results = await checkProvider(readConfig({ ...ALONE, ...settings }).oauth)
  return results.map(({ setting, is, message }) => `${setting} ${is}: ${message}`)
}

await test('--check: a discovered provider with a key, pushed requests and iss is right in every line', async (t) => {
  const [key, next] = [newClientKey('P-256'), newClientKey('Ed25519')]
  const jwks = { keys: [key.publicJwk] }
  const provider = await testProvider(t, ALONE.PUBLIC_URL, {
    clientId: ALONE.CLIENT_ID,
    client: { token_endpoint_auth_method: 'private_key_jwt', jwks },
    requirePushed: true,
  })
  const settings = {
    AUTH_URL: provider.url,
    ISSUER: provider.url,
    DISCOVERY: 'true',
    CLIENT_AUTH: 'private_key_jwt',
    CLIENT_KEY: key.pem,
  }
  const [first, second] = [key, next].map(({ publicJwk: { kid, alg } }) => `kid ${String(kid)} \\(${String(alg)}\\)`)
  t.match(await check(settings), [
    /^DISCOVERY ok: .* names every endpoint$/,
    new RegExp(`^AUTH_URL ok: .* accepts this client as authenticated \\(private_key_jwt, ${first}\\)$`),
    /^clock ok: .* has the time of this machine \([01] s apart, 30 s are tolerated\)$/,
    /^PAR_URL ok: .* accepts pushed authorization requests$/,
    /^AUTH_URL ok: .* accepts the authorization requests of this client$/,
    /^ISSUER ok: .* sends callbacks with the right iss$/,
    /^REVOCATION_URL ok: .* accepts connections$/,
  ])
  const rotating = await check({ ...settings, CLIENT_KEY: key.pem + next.pem })
  const unknown = `knows the first key of CLIENT_KEY, ${first}, but does not accept the second, ${second}$`
  t.match(rotating[1], new RegExp(`^AUTH_URL warning: .* ${unknown}`))
  const early = await check({ ...settings, CLIENT_KEY: next.pem + key.pem })
  t.match(early[1], new RegExp(`^AUTH_URL failed: .* refuses the key that signs, ${second}, but accepts ${first}$`))
  const wrong = await check({ ...settings, CLIENT_KEY: next.pem })
  t.match(wrong[1], new RegExp(`^AUTH_URL failed: .* refuses this client \\(invalid_client: .*\\) with ${second}$`))
  t.match(wrong[3], /^PAR_URL failed: .* refuses this client \(invalid_client: .*\)$/)
  t.equal(wrong.length, 6, 'whether a request is accepted that cannot be pushed is not said')
  const plain = { ...settings, DISCOVERY: 'false', ISSUER: `${provider.url}/`, PAR_URL: `${provider.url}/oauth2/none` }
  const lines = await check(plain)
  t.match(lines[2], /^PAR_URL failed: .* is not an endpoint for pushed requests/)
  t.match(lines[3], new RegExp(`^ISSUER failed: .* another iss, so every login fails: "${provider.url}"$`))
  t.notMatch([...rotating, ...early, ...wrong, ...lines].join(), /BEGIN|"d"/)
})

await test('--check: a key that the provider accepts only with another algorithm is told apart from a wrong key', async (t) => {
  const key = newClientKey(2048)
  const provider = await testProvider(t, ALONE.PUBLIC_URL, {
    clientId: ALONE.CLIENT_ID,
    client: { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ ...key.publicJwk, alg: 'PS256' }] } },
    library: { enabledJWA: { clientAuthSigningAlgValues: ['PS256', 'RS256'] } },
  })
  const settings = { AUTH_URL: provider.url, ISSUER: provider.url, CLIENT_AUTH: 'private_key_jwt' }
  const [line] = await check({ ...settings, CLIENT_KEY: key.pem })
  const kid = String(key.publicJwk['kid'])
  t.match(line, `refuses the key that signs, kid ${kid} (RS256), but accepts kid ${kid} (PS256)`)
  const [right] = await check({ ...settings, CLIENT_KEY: JSON.stringify({ ...key.privateJwk, alg: 'PS256' }) })
  t.match(right, `(private_key_jwt, kid ${kid} (PS256))`)
})

await test('--check: metadata that is away, wrong or lacks the method is a line of its own', async (t) => {
  const issuer = await metadataServer(t)
  const settings = { AUTH_URL: issuer.url, DISCOVERY: 'true' }
  t.match(await check(settings), [/^DISCOVERY failed: .* no metadata that can be used: ISSUER must be an issuer/])
  issuer.responses[OIDC_PATH] = document({}, 503)
  t.match(await check(settings), [/^DISCOVERY failed: .* has no metadata at the moment \(status 503\)$/])
  issuer.responses[OIDC_PATH] = issuer.metadata({ token_endpoint_auth_methods_supported: ['client_secret_basic'] })
  t.match(await check(settings), [
    /^DISCOVERY ok/,
    /^CLIENT_AUTH warning: .*only: client_secret_basic$/,
    /^AUTH_URL failed/,
    /^clock ok/,
    /^AUTH_URL failed: .* refuses the authorization requests of this client, so every login fails \(status 404\)$/,
  ])
})

await test('--check: a token endpoint that takes any credential, and one that looks at the code first, are warnings', async (t) => {
  const endpoint = await tokenEndpoint(t)
  const settings = { AUTH_URL: endpoint.url, CLIENT_SECRET: 'never-print-this' }
  endpoint.behaviour = json({ error: 'invalid_grant' }, 400)
  t.match(await check(settings), [
    /^AUTH_URL warning: .* does not refuse a wrong credential either \(client_secret_post\)$/,
    /^clock ok/,
    /^AUTH_URL ok: .* shows a page of its own for the authorization requests of this client$/,
  ])
  endpoint.behaviour = json({ error: 'invalid_code', error_description: 'no never-print-this\nhere' }, 403)
  const lines = await check(settings)
  t.match(
    lines[0],
    /^AUTH_URL warning: .*, but instead of invalid_grant the provider returned invalid_code: no … here$/,
  )
  endpoint.behaviour = json({ message: 'no' }, 400)
  t.match((await check(settings))[0], /^AUTH_URL failed: .* not a token endpoint: it refuses without an error code$/)
  endpoint.behaviour = json({ error: 'unauthorized_client' }, 400)
  t.match((await check(settings))[0], /^AUTH_URL failed: .* refuses this client \(unauthorized_client\)$/)
  for (const bare of [json({ message: 'no' }, 401), html(401)]) {
    endpoint.behaviour = bare
    const pushed = await check({ ...settings, PAR_URL: `${endpoint.url}/oauth2/token` })
    t.match(
      pushed.find((line) => line.startsWith('PAR_URL')),
      /^PAR_URL failed: .* refuses this client without an error, or a proxy does \(401\)$/,
    )
    t.match(
      (await check(settings))[0],
      /^AUTH_URL failed: .* refuses this client without an error, or a proxy does \(401\)$/,
    )
  }
  endpoint.behaviour = (request, response, form) =>
    form.get('client_secret') === settings.CLIENT_SECRET
      ? json({ error: 'invalid_grant' }, 400)(request, response, form)
      : html(401)(request, response, form)
  t.match((await check(settings))[0], /^AUTH_URL ok: .* accepts this client as authenticated/)
  endpoint.behaviour = json({ error: 'unauthorized_client' }, 400)
  const required = await check({ ...settings, ISSUER_REQUIRED: 'true' })
  t.match(required[3], /^ISSUER warning: .* could not be checked$/)
  t.notMatch([...lines, ...required].join(), /never-print/)
})
