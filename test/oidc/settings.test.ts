import { test, type Test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { workerEnvironment } from '../../src/config/worker-environment.ts'
import { discover, type Discovery } from '../../src/oauth/discovery.ts'
import { errorOf, PRODUCTION, wrongOnes } from '../support/config/wrong-settings.ts'
import { metadataServer, OIDC_PATH, type MetadataServer } from '../support/login/metadata-server.ts'
import { ALONE } from '../support/server/settings.ts'

const OIDC = { ...PRODUCTION, OIDC: 'true', DISCOVERY: 'true', OAUTH_SCOPE: 'openid trade' }

await test('OIDC needs openid and DISCOVERY, and bears no other answer to whose a session is', (t) => {
  t.same(wrongOnes(OIDC), [])
  t.same(wrongOnes({ ...OIDC, OIDC: '1' }), [])
  for (const [wrong, settings] of [
    ['OAUTH_SCOPE', { OAUTH_SCOPE: '' }],
    ['OAUTH_SCOPE', { OAUTH_SCOPE: 'openid2 trade' }],
    ['DISCOVERY', { DISCOVERY: '' }],
    ['IDENTITY_PATH', { IDENTITY_PATH: '/me', IDENTITY_POINTER: '/id' }],
    ['AUTHORIZATION_PARAMS', { AUTHORIZATION_PARAMS: 'nonce=1' }],
    ['AUTHORIZATION_PARAMS', { AUTHORIZATION_PARAMS: 'max_age=1h' }],
    ['AUTHORIZATION_PARAMS', { AUTHORIZATION_PARAMS: 'audience=api&ID_TOKEN_HINT=x' }],
    ['JWKS_URL', { JWKS_URL: 'http://keys.example/jwks' }],
    ['END_SESSION_URL', { END_SESSION_URL: 'http://auth.example/end' }],
    ['IDENTITY_CLAIMS', { IDENTITY_CLAIMS: 'name,name' }],
    ['IDENTITY_CLAIMS', { IDENTITY_CLAIMS: 'name, ,email' }],
    ['IDENTITY_CLAIMS', { IDENTITY_CLAIMS: 'a name' }],
    ['BACKCHANNEL_FROM', { BACKCHANNEL_LOGOUT: 'true', BACKCHANNEL_FROM: '0.0.0.0/0' }],
    ['BACKCHANNEL_FROM', { BACKCHANNEL_LOGOUT: 'true', BACKCHANNEL_FROM: 'auth.example' }],
    ['BACKCHANNEL_WITHOUT_SID', { BACKCHANNEL_LOGOUT: 'true', BACKCHANNEL_WITHOUT_SID: 'all' }],
    ['BACKCHANNEL_LOGOUT', { OIDC: '', BACKCHANNEL_LOGOUT: 'true' }],
  ] as const) {
    t.same(wrongOnes({ ...OIDC, ...settings }), [wrong], JSON.stringify(settings))
  }
  t.match(errorOf({ ...OIDC, IDENTITY_PATH: '/me', IDENTITY_POINTER: '/id' })?.message, /IDENTITY_PATH must not/)
  t.same(wrongOnes({ ...OIDC, MAX_SESSIONS_PER_SUBJECT: '3', LOG_SUBJECT: 'plain' }), [])
  const unused = {
    JWKS_URL: 'https://x.example',
    IDENTITY_CLAIMS: 'name',
    ID_TOKEN_HINT: 'true',
    BACKCHANNEL_FROM: '::1',
  }
  const warnings = readConfig({ ...PRODUCTION, ...unused }).warnings.filter((warning) => /no effect/.test(warning))
  t.equal(warnings.length, 4, warnings.join('\n'))
  t.notMatch(readConfig({ ...OIDC, OIDC: '1', IDENTITY_CLAIMS: 'name' }).warnings.join(), /no effect/)
  t.end()
})

/** What a discovery with OIDC makes of these metadata. */
async function discovered(
  issuer: MetadataServer,
  other: object,
  settings: Record<string, string> = {},
): Promise<Discovery> {
  issuer.responses = { [OIDC_PATH]: issuer.metadata({ ...other }) }
  const oidc = { OIDC: 'true', DISCOVERY: 'true', OAUTH_SCOPE: 'openid' }
  return discover(readConfig({ ...ALONE, AUTH_URL: issuer.url, ...oidc, ...settings }).oauth)
}

const oidcOf = (discovery: Discovery) => (discovery.is === 'found' ? discovery.provider.oidc : discovery)

await test('discover takes the keys from any https host, and the address of logouts from the host of the issuer', async (t: Test) => {
  const issuer = await metadataServer(t)
  const { url } = issuer
  const elsewhere = 'https://keys.example/jwks'
  t.match(oidcOf(await discovered(issuer, { jwks_uri: elsewhere })), { jwksUrl: elsewhere, endSessionUrl: undefined })
  t.match(oidcOf(await discovered(issuer, { jwks_uri: elsewhere, end_session_endpoint: `${url}/end` })), {
    endSessionUrl: `${url}/end`,
  })
  const named = { JWKS_URL: `${url}/keys`, END_SESSION_URL: `${url}/out` }
  const other = { end_session_endpoint: 'https://other.example/end' }
  t.match(oidcOf(await discovered(issuer, other, named)), { jwksUrl: `${url}/keys`, endSessionUrl: `${url}/out` })
  t.match(oidcOf(await discovered(issuer, { jwks_uri: elsewhere, ...other })), {
    message: /another host.*END_SESSION_URL/,
  })
  t.match(oidcOf(await discovered(issuer, {})), { message: /without jwks_uri: name it in JWKS_URL/ })
  for (const jwks_uri of ['ftp://x.example', 'https://a:b@x.example', 7, '/jwks']) {
    t.match(oidcOf(await discovered(issuer, { jwks_uri })), { message: /jwks_uri/ }, String(jwks_uri))
  }
  issuer.responses = { [OIDC_PATH]: issuer.metadata({ jwks_uri: 7, ...other }) }
  const plain = await discover(readConfig({ ...ALONE, AUTH_URL: url, DISCOVERY: 'true' }).oauth)
  t.equal(plain.is, 'found', 'without OIDC nobody looks at them')
})

await test('Workers read what their supervisor has discovered of OpenID Connect', (t) => {
  const settings = { ...OIDC, BACKCHANNEL_LOGOUT: 'true', BACKCHANNEL_FROM: '192.0.2.0/24', IDENTITY_CLAIMS: 'name' }
  const config = readConfig(settings)
  const { oidc } = config.oauth
  const endpoints = { jwksUrl: 'https://keys.example/jwks', endSessionUrl: 'https://auth.example/end' }
  const complete = {
    ...config,
    oauth: { ...config.oauth, discovery: undefined, oidc: oidc && { ...oidc, ...endpoints } },
  }
  const worker = readConfig({ ...settings, ...workerEnvironment(complete) })
  t.same(worker.oauth.oidc, complete.oauth.oidc)
  t.end()
})
