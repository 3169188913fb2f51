import { test, type Test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import type { ProviderConfig } from '../../src/config/provider.ts'
import { discover, type Discovery } from '../../src/oauth/discovery.ts'
import {
  document,
  metadataServer,
  OAUTH_PATH,
  OIDC_PATH,
  type MetadataResponse,
  type MetadataServer,
} from '../support/login/metadata-server.ts'
import { newClientKey } from '../support/login/client-keys.ts'
import { ALONE } from '../support/server/settings.ts'

interface DiscoveryWorld {
  readonly issuer: MetadataServer
  /** Discovers with these settings while the first place has this response. */
  readonly outcome: (response: MetadataResponse, settings?: Record<string, string>) => Promise<Discovery>
}

async function discoveryWorld(t: Test): Promise<DiscoveryWorld> {
  const issuer = await metadataServer(t)
  return {
    issuer,
    async outcome(response, settings = {}) {
      issuer.responses = { [OIDC_PATH]: response }
      return discover(configOf(issuer, settings))
    },
  }
}

function configOf({ url }: MetadataServer, settings: Record<string, string> = {}): ProviderConfig {
  return readConfig({ ...ALONE, AUTH_URL: url, DISCOVERY: 'true', ...settings }).oauth
}

const found = (discovery: Discovery): ProviderConfig | undefined =>
  discovery.is === 'found' ? discovery.provider : undefined
const refusal = (discovery: Discovery): string | undefined =>
  discovery.is === 'refused' ? discovery.message : discovery.is

await test('discover takes the metadata of OpenID Connect, or else that of RFC 8414', async (t) => {
  const { issuer, outcome } = await discoveryWorld(t)
  t.match(found(await outcome(issuer.metadata())), {
    authorizationUrl: `${issuer.url}/authorize`,
    tokenUrl: `${issuer.url}/token`,
    parUrl: undefined,
    revocationUrl: undefined,
    issuerRequired: false,
  })
  t.same(issuer.requests, [OIDC_PATH])

  issuer.requests.length = 0
  for (const response of [undefined, document('<h1>Not here</h1>'), document({}, 403)]) {
    issuer.responses = { [OAUTH_PATH]: issuer.metadata({ revocation_endpoint: `${issuer.url}/revoke` }) }
    if (response !== undefined) issuer.responses[OIDC_PATH] = response
    t.equal(found(await discover(configOf(issuer)))?.revocationUrl, `${issuer.url}/revoke`)
  }
  t.same(new Set(issuer.requests), new Set([OIDC_PATH, OAUTH_PATH]))
})

await test('discover asks below or above the path of an issuer that has one', async (t) => {
  const issuer = await metadataServer(t)
  const tenant = `${issuer.url}/tenant/1`
  issuer.responses = { [`${OAUTH_PATH}/tenant/1`]: issuer.metadata({ issuer: tenant }) }
  t.equal(found(await discover(configOf(issuer, { ISSUER: tenant })))?.issuer, tenant)
  t.same(issuer.requests, [`/tenant/1${OIDC_PATH}`, `${OAUTH_PATH}/tenant/1`])
})

await test('discover accepts the issuer to the letter only; AUTH_URL may differ from it by a final slash', async (t) => {
  const { issuer, outcome } = await discoveryWorld(t)
  const slashed = `${issuer.url}/`
  t.equal(found(await outcome(issuer.metadata({ issuer: slashed })))?.issuer, slashed)
  t.equal(found(await outcome(issuer.metadata({ issuer: slashed }), { ISSUER: slashed }))?.issuer, slashed)
  for (const [named, published] of [
    [issuer.url, slashed],
    [slashed, issuer.url],
    [undefined, 'https://attacker.example'],
    [undefined, `${issuer.url}/tenant`],
    [undefined, issuer.url.replace('http', 'HTTP')],
    [undefined, undefined],
    [undefined, [issuer.url]],
  ] as const) {
    const settings: Record<string, string> = named === undefined ? {} : { ISSUER: named }
    const message = refusal(await outcome(issuer.metadata({ issuer: published }), settings))
    t.match(message, /^must be the issuer that the metadata names/, JSON.stringify(published))
  }
})

await test('discover refuses endpoints that are on another host, unless their own setting names them', async (t) => {
  const { issuer, outcome } = await discoveryWorld(t)
  const elsewhere = 'http://169.254.169.254/latest/meta-data'
  const push = { require_pushed_authorization_requests: true }
  for (const [endpoint, setting, other] of [
    ['authorization_endpoint', 'AUTHORIZATION_URL', {}],
    ['token_endpoint', 'TOKEN_URL', {}],
    ['revocation_endpoint', 'REVOCATION_URL', {}],
    ['pushed_authorization_request_endpoint', 'PAR_URL', push],
  ] as const) {
    const metadata = issuer.metadata({ [endpoint]: elsewhere, ...other })
    const message = refusal(await outcome(metadata))
    t.match(message, new RegExp(`${endpoint} is on another host \\(http://169\\.254\\.169\\.254\\).*${setting}`))
    const named = { [setting]: `${issuer.url}/named` }
    t.ok(Object.values(found(await outcome(metadata, named)) ?? {}).includes(`${issuer.url}/named`), setting)
  }
  const { port } = new URL(issuer.url)
  for (const close of [`http://127.0.0.1:${Number(port) - 1}/token`, `http://127.0.0.1:${port}.example/token`]) {
    t.match(refusal(await outcome(issuer.metadata({ token_endpoint: close }))), /another host|is not an http/, close)
  }
  const listed = { AUTH_URL: 'http://localhost:9', ISSUER: issuer.url }
  t.equal(
    found(await outcome(issuer.metadata({ token_endpoint: 'http://localhost:9/t' }), listed))?.tokenUrl,
    'http://localhost:9/t',
  )
})

await test('discover refuses endpoints that are no plain addresses, and metadata that lacks what a login needs', async (t) => {
  const { issuer, outcome } = await discoveryWorld(t)
  const { url } = issuer
  const host = new URL(url).host
  for (const endpoint of [
    `${url}/token?client_id=attacker`,
    `${url}/token#fragment`,
    `http://user:password@${host}/token`,
    `ftp://${host}/token`,
    'javascript:alert(1)',
    '/token',
    '',
    42,
    {},
  ]) {
    const message = refusal(await outcome(issuer.metadata({ token_endpoint: endpoint })))
    t.match(message, /^has metadata whose token_endpoint is not an http or https address/, JSON.stringify(endpoint))
  }
  for (const [metadata, expected] of [
    [{ token_endpoint: undefined }, /without token_endpoint: name it in TOKEN_URL$/],
    [{ authorization_endpoint: null }, /without authorization_endpoint: name it in AUTHORIZATION_URL$/],
    [{ require_pushed_authorization_requests: true }, /without pushed_authorization_request_endpoint/],
    [{ code_challenge_methods_supported: ['plain'] }, /without PKCE by S256/],
    [{ require_signed_request_object: true }, /^is a provider that demands signed request objects/],
  ] as const) {
    t.match(refusal(await outcome(issuer.metadata(metadata))), expected)
  }
})

await test('discover takes endpoints with a query, unless requests would have one of its parameters twice', async (t) => {
  const { issuer, outcome } = await discoveryWorld(t)
  const { url } = issuer
  const metadata = issuer.metadata({
    authorization_endpoint: `${url}/authorize?p=b2c_1_sign_in`,
    token_endpoint: `${url}/token?p=b2c_1_sign_in`,
  })
  t.match(found(await outcome(metadata, { AUTHORIZATION_PARAMS: 'audience=api' })), {
    authorizationUrl: `${url}/authorize?p=b2c_1_sign_in`,
    tokenUrl: `${url}/token?p=b2c_1_sign_in`,
  })
  const repeated = refusal(await outcome(metadata, { AUTHORIZATION_PARAMS: 'audience=api&p=other' }))
  t.match(repeated, /^has metadata whose authorization_endpoint has a parameter of AUTHORIZATION_PARAMS in its query$/)
  for (const query of ['response_mode=fragment', 'request_uri=urn:x', 'prompt=none', 'p=1&p=2']) {
    const wrong = issuer.metadata({ authorization_endpoint: `${url}/authorize?${query}` })
    t.match(refusal(await outcome(wrong)), /^has metadata whose authorization_endpoint is not an http or https/, query)
  }
})

await test('discover pushes authorization requests only if the provider demands it or PAR_URL is set', async (t) => {
  const { issuer, outcome } = await discoveryWorld(t)
  const offered = { pushed_authorization_request_endpoint: `${issuer.url}/par` }
  const demanded = { ...offered, require_pushed_authorization_requests: true }
  t.equal(found(await outcome(issuer.metadata(offered)))?.parUrl, undefined)
  t.equal(found(await outcome(issuer.metadata(demanded)))?.parUrl, `${issuer.url}/par`)
  const named = { PAR_URL: 'http://127.0.0.1:9/par' }
  t.equal(found(await outcome(issuer.metadata(offered), named))?.parUrl, named.PAR_URL)
})

await test('discover demands iss in callbacks if the provider says that it sends one', async (t) => {
  const { issuer, outcome } = await discoveryWorld(t)
  const supported = { authorization_response_iss_parameter_supported: true }
  t.equal(found(await outcome(issuer.metadata(supported)))?.issuerRequired, true)
  t.equal(found(await outcome(issuer.metadata(), { ISSUER_REQUIRED: 'true' }))?.issuerRequired, true)
})

await test('discover warns if the metadata does not offer CLIENT_AUTH, or the algorithm of a key', async (t) => {
  const { issuer, outcome } = await discoveryWorld(t)
  const methods = ['client_secret_basic', '<script>', 'client_secret_post']
  const metadata = issuer.metadata({ token_endpoint_auth_methods_supported: methods })
  const discovery = await outcome(metadata)
  t.match(discovery, {
    is: 'found',
    warnings: [/CLIENT_AUTH is none.* only: client_secret_basic, client_secret_post$/],
  })
  t.match(await outcome(metadata, { CLIENT_SECRET: 'x' }), { is: 'found', warnings: { length: 0 } })
  const signed = issuer.metadata({
    token_endpoint_auth_methods_supported: ['private_key_jwt'],
    token_endpoint_auth_signing_alg_values_supported: ['PS256', 'ES256'],
  })
  const keys = [newClientKey('P-256'), newClientKey(2048)]
  const settings = {
    ISSUER: issuer.url,
    CLIENT_AUTH: 'private_key_jwt',
    CLIENT_KEY: keys.map(({ pem }) => pem).join(''),
  }
  t.match(await outcome(signed, settings), {
    warnings: [new RegExp(`CLIENT_KEY ${String(keys[1]?.publicJwk['kid'])} is RS256.* only: PS256, ES256$`)],
  })
})

await test('discover refuses responses that are no metadata, and follows no redirect', async (t) => {
  const { outcome } = await discoveryWorld(t)
  const target = await metadataServer(t)
  const redirect: MetadataResponse = (_request, response) =>
    response.writeHead(302, { location: target.url + OIDC_PATH }).end()
  for (const [response, expected] of [
    [
      document('<!doctype html><title>Log in</title>'),
      /^must be an issuer with metadata: .*is not a JSON object; .*404$/,
    ],
    [document('[]'), /is not a JSON object/],
    [document('null'), /is not a JSON object/],
    [document('{"issuer":'), /is not a JSON object/],
    [document('', 204), /has status 204/],
    [document({}, 404), /has status 404; .*has status 404$/],
    [redirect, /is redirected, with status 302/],
    [document(`{"issuer":"${' '.repeat(10_000_000)}"}`), /^has metadata that is too large/],
  ] as const) {
    t.match(refusal(await outcome(response)), expected)
  }
  t.same(target.requests, [])
})

await test('discover reports a provider that is away or overloaded as such, so that the start waits', async (t) => {
  const { issuer, outcome } = await discoveryWorld(t)
  for (const status of [408, 429, 500, 502, 503, 504]) {
    t.equal((await outcome(document({ error: 'down' }, status))).is, 'away', String(status))
  }
  t.equal((await outcome((_request, response) => response.destroy())).is, 'away', 'a connection that is closed')
  t.equal((await outcome((_request, response) => response.writeHead(200).write('{') && response.destroy())).is, 'away')
  const nobody = { AUTH_URL: 'http://127.0.0.1:1' }
  t.equal((await discover(configOf(issuer, nobody))).is, 'away', 'nobody listens')
})

await test('discover gives up on metadata that arrives byte by byte', async (t) => {
  const issuer = await metadataServer(t)
  let drip: NodeJS.Timeout | undefined
  t.teardown(() => clearInterval(drip))
  issuer.responses[OIDC_PATH] = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{')
    drip = setInterval(() => response.write(' '), 10)
  }
  t.equal((await discover(configOf(issuer), 200)).is, 'away')
})
