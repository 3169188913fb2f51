import { test, type Test } from 'tap'
import type { ProviderOptions } from '../../sandbox/provider.ts'
import { parseClientKeys, publicJwk } from '../../src/config/client-key.ts'
import { readConfig } from '../../src/config/config.ts'
import { discover } from '../../src/oauth/discovery.ts'
import { gated, type GatedProvider } from '../support/login/gated-provider.ts'
import { keepOutOfLogs } from '../support/telemetry/log-scan.ts'
import { newClientKey } from '../support/login/client-keys.ts'
import { isLoggedIn } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { type World, startWorld } from '../support/world.ts'
import { type StartProvider } from '../support/parts.ts'
import { ACCOUNTS } from '../support/user.ts'

/** A secret with characters that form encoding changes. */
const SECRET = 'a secret: with/every+kind&of%character'

/** A provider whose only client is registered as `options` say, and two servers with Redis that have these settings. */
function variant(
  t: Test,
  options: Partial<ProviderOptions>,
  settingsOf: (gate: GatedProvider) => Record<string, string>,
): Promise<World<'sandbox', GatedProvider>> {
  const provider: StartProvider<GatedProvider> = async (t, publicUrl) => {
    const part = await gated(options)(t, publicUrl)
    return { ...part, settings: { ...part.settings, ...settingsOf(part.provider) } }
  }
  return startWorld(t, { provider, upstream: 'sandbox', redis: true, instances: 2 })
}

/** Logs in, lets two instances refresh the token at once, and logs out. */
async function wholeLife(t: Test, world: World<'sandbox', GatedProvider>): Promise<void> {
  const { provider: gate, publicUrl, browser, server } = world
  const [, other = server] = world.servers
  gate.expiresIn = 0.001
  const arrival = await world.logIn()
  t.equal(arrival.url.href, `${publicUrl}/`, 'the login returns without an error')
  gate.expiresIn = 3600
  const there = browser.clone()
  there.page = new URL(other.url)
  const call = { headers: { 'x-csrf': '1' } }
  const answers = await Promise.all([browser, there].map((tab) => tab.fetch(ACCOUNTS, call)))
  t.same(
    answers.map(({ status }) => status),
    [200, 200],
  )
  t.equal(gate.refreshes.length, 1, 'two instances refresh once')
  t.equal((await world.logOut()).status, 204)
  await until(() => gate.revoked.length === 2, 'both tokens are revoked')
  t.notOk(await isLoggedIn(browser, server.url))
}

const key = newClientKey('P-256')
keepOutOfLogs([key.pem.replaceAll(/-----.*-----|\n/g, ''), SECRET])

await test('client_secret_basic: a login, a refresh by two instances and a revocation are authenticated', async (t) => {
  const client = { token_endpoint_auth_method: 'client_secret_basic', client_secret: SECRET } as const
  const settings = { CLIENT_AUTH: 'client_secret_basic', CLIENT_SECRET: SECRET }
  await wholeLife(t, await variant(t, { client }, () => settings))
})

await test('private_key_jwt with pushed requests: nothing of the request but its URI is in the address', async (t) => {
  const client = { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key.publicJwk] } } as const
  const world = await variant(t, { client, requirePushed: true }, (gate) => ({
    CLIENT_AUTH: 'private_key_jwt',
    CLIENT_KEY: key.pem,
    ISSUER: gate.url,
    ISSUER_REQUIRED: 'true',
    PAR_URL: `${gate.url}/oauth2/par`,
  }))
  await wholeLife(t, world)
  t.same(
    world.provider.provider.authorizations.map((parameters) => Object.keys(parameters).toSorted()),
    [['client_id', 'request_uri']],
  )
})

await test('private_key_jwt: a key that is registered as EdDSA signs by that name, and not as Ed25519', async (t) => {
  const { privateJwk, publicJwk: registered } = newClientKey('Ed25519')
  const jwks = { keys: [{ ...registered, alg: 'EdDSA' }] }
  const client = { token_endpoint_auth_method: 'private_key_jwt', jwks } as const
  const world = await variant(t, { client }, (gate) => ({
    CLIENT_AUTH: 'private_key_jwt',
    CLIENT_KEY: JSON.stringify({ ...privateJwk, alg: 'EdDSA' }),
    ISSUER: gate.url,
  }))
  await wholeLife(t, world)
})

await test('discovery: the metadata of a real provider gives endpoints, issuer and the need to push', async (t) => {
  const client = { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key.publicJwk] } } as const
  const { provider: gate, settings } = await variant(t, { client, requirePushed: true }, (gate) => ({
    CLIENT_AUTH: 'private_key_jwt',
    CLIENT_KEY: JSON.stringify(key.privateJwk),
    ISSUER: gate.url,
    DISCOVERY: 'true',
    REVOCATION_URL: '',
  }))
  const { oauth } = readConfig({ CLIENT_ID: 'test-client', ...settings })
  const found = await discover(oauth)
  t.match(found, {
    is: 'found',
    warnings: { length: 0 },
    provider: {
      issuer: gate.url,
      issuerRequired: true,
      authorizationUrl: `${gate.url}/oauth2/auth`,
      tokenUrl: `${gate.url}/oauth2/token`,
      parUrl: `${gate.url}/oauth2/par`,
      revocationUrl: `${gate.url}/oauth2/revoke`,
      discovery: undefined,
    },
  })
  const [parsed] = parseClientKeys(key.pem) ?? []
  t.same(parsed && publicJwk(parsed), key.publicJwk)
})
