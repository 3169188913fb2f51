import { test } from 'tap'
import { startProvider } from '../../sandbox/provider.ts'
import { readConfig } from '../../src/config/config.ts'
import { checkProvider } from '../../src/ops/check-provider.ts'
import { newClientKey } from '../support/login/client-keys.ts'
import { document, metadataServer, OIDC_PATH } from '../support/login/metadata-server.ts'
import { ALONE } from '../support/server/settings.ts'
import { json, tokenEndpoint } from '../support/login/token-endpoint.ts'

/** The results of `--check` about the provider: setting, result and message. */
async function check(settings: Record<string, string>): Promise<string[]> {
  const results = await checkProvider(readConfig({ ...ALONE, ...settings }).oauth)
  return results.map(({ setting, is, message }) => `${setting} ${is}: ${message}`)
}

await test('--check: a discovered provider with a key, pushed requests and iss is right in every line', async (t) => {
  const [key, next] = [newClientKey('P-256'), newClientKey('Ed25519')]
  const jwks = { keys: [key.publicJwk] }
  const provider = await startProvider({
    clientId: ALONE.CLIENT_ID,
    redirectUris: [`${ALONE.PUBLIC_URL}/auth/callback`],
    client: { token_endpoint_auth_method: 'private_key_jwt', jwks },
    requirePushed: true,
  })
  t.teardown(() => provider.close())
  const settings = {
    AUTH_URL: provider.url,
    ISSUER: provider.url,
    DISCOVERY: 'true',
    CLIENT_AUTH: 'private_key_jwt',
    CLIENT_KEY: key.pem,
  }
  t.match(await check(settings), [
    /^DISCOVERY ok: .* names every endpoint$/,
    /^AUTH_URL ok: .* accepts this client as authenticated \(private_key_jwt\)$/,
    /^PAR_URL ok: .* accepts pushed authorization requests$/,
    /^ISSUER ok: .* sends callbacks with the right iss$/,
    /^REVOCATION_URL ok: .* accepts connections$/,
  ])
  const rotating = await check({ ...settings, CLIENT_KEY: key.pem + next.pem })
  t.match(rotating[1], /^AUTH_URL warning: .* knows the first key of CLIENT_KEY, but not the second$/)
  const wrong = await check({ ...settings, CLIENT_KEY: next.pem })
  t.match(wrong[1], /^AUTH_URL failed: .* refuses this client \(invalid_client\)$/)
  t.match(wrong[2], /^PAR_URL failed: .* refuses this client \(invalid_client\)$/)
  const plain = { ...settings, DISCOVERY: 'false', ISSUER: `${provider.url}/`, PAR_URL: `${provider.url}/oauth2/none` }
  const lines = await check(plain)
  t.match(lines[1], /^PAR_URL failed: .* is not an endpoint for pushed requests/)
  t.match(lines[2], new RegExp(`^ISSUER failed: .* another iss, so every login fails: "${provider.url}"$`))
  t.notMatch([...rotating, ...wrong, ...lines].join(), /BEGIN|"d"/)
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
  ])
})

await test('--check: a token endpoint that takes any credential, and one that looks at the code first, are warnings', async (t) => {
  const endpoint = await tokenEndpoint(t)
  const settings = { AUTH_URL: endpoint.url, CLIENT_SECRET: 'never-print-this' }
  endpoint.behaviour = json({ error: 'invalid_grant' }, 400)
  t.match(await check(settings), [
    /^AUTH_URL warning: .* does not refuse a wrong credential either \(client_secret_post\)$/,
  ])
  endpoint.behaviour = json({ error: 'invalid_code' }, 403)
  const lines = await check(settings)
  t.match(lines, [/^AUTH_URL warning: .*, but the provider returned invalid_code instead of invalid_grant$/])
  endpoint.behaviour = json({ message: 'no' }, 400)
  t.match(await check(settings), [/^AUTH_URL failed: .* not a token endpoint: it refuses without an error code$/])
  endpoint.behaviour = json({ error: 'unauthorized_client' }, 400)
  t.match(await check(settings), [/^AUTH_URL failed: .* refuses this client \(unauthorized_client\)$/])
  const required = await check({ ...settings, ISSUER_REQUIRED: 'true' })
  t.match(required[1], /^ISSUER warning: .* could not be checked$/)
  t.notMatch([...lines, ...required].join(), /never-print/)
})
