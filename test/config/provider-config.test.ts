import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { workerEnvironment } from '../../src/config/worker-environment.ts'
import { errorOf, PRODUCTION, wrongOnes } from '../support/config/wrong-settings.ts'
import { newClientKey } from '../support/login/client-keys.ts'
import { ALONE } from '../support/server/settings.ts'

const key = newClientKey('P-256')

await test('The defaults of the provider are those of the first version', (t) => {
  t.match(readConfig({ ...ALONE, AUTH_URL: 'http://127.0.0.1:1/' }).oauth, {
    issuer: 'http://127.0.0.1:1',
    isIssuerNamed: false,
    issuerRequired: false,
    authorizationUrl: 'http://127.0.0.1:1/oauth2/auth',
    tokenUrl: 'http://127.0.0.1:1/oauth2/token',
    parUrl: undefined,
    authorizationParams: { length: 0 },
    clientAuth: 'none',
    clientKeys: undefined,
    discovery: undefined,
  })
  t.equal(readConfig({ ...ALONE, CLIENT_SECRET: 'x' }).oauth.clientAuth, 'client_secret_post')
  t.end()
})

await test('Production demands https of every endpoint and of the issuer', (t) => {
  const names = ['AUTHORIZATION_URL', 'TOKEN_URL', 'PAR_URL', 'REVOCATION_URL', 'ISSUER']
  const insecure = Object.fromEntries(names.map((name) => [name, 'http://auth.example/x']))
  t.same(wrongOnes({ ...PRODUCTION, ...insecure }), names.toSorted())
  const withQuery = Object.fromEntries(names.map((name) => [name, 'https://auth.example/x?client_id=y']))
  t.same(wrongOnes({ ...PRODUCTION, ...withQuery }), names.toSorted())
  t.end()
})

await test('Endpoints may have a query of their own, but no parameter that requests add to it', (t) => {
  const names = ['AUTHORIZATION_URL', 'TOKEN_URL', 'PAR_URL', 'REVOCATION_URL']
  const all = (address: string) => Object.fromEntries(names.map((name) => [name, address]))
  for (const query of ['?p=b2c_1_sign_in', '?', '?p=a%20b&api-version=1.0', '?resource=a&resource=b', '?flag']) {
    t.same(wrongOnes({ ...PRODUCTION, ...all(`https://auth.example/x${query}`) }), [], query)
  }
  for (const query of [
    ...['state=x', 'SCOPE=x', 'redirect%5Furi=x', 'app_id=1', 'utm_source=x', 'sidc=x', 'client_secret=x'],
    ...['request=x', 'request_uri=x', 'response_mode=fragment', 'prompt=consent', 'Prompt=login'],
    ...['p=1&p=2', 'p=1&P=2', 'p=%zz', 'p=%00', '&', 'p=1#fragment'],
  ]) {
    t.same(wrongOnes({ ...PRODUCTION, ...all(`https://auth.example/x?${query}`) }), names.toSorted(), query)
  }
  const AUTHORIZATION_URL = 'https://auth.example/x?p=1&resource=a'
  for (const [params, wrong] of [
    ['audience=api&resource=b&prompt=consent', []],
    ['audience=api&p=1', ['AUTHORIZATION_PARAMS']],
    ['P=2', ['AUTHORIZATION_PARAMS']],
  ] as const) {
    t.same(wrongOnes({ ...PRODUCTION, AUTHORIZATION_URL, AUTHORIZATION_PARAMS: params }), wrong, params)
  }
  t.end()
})

await test('CLIENT_AUTH must be a known method whose credential is set; CLIENT_KEY needs ISSUER', (t) => {
  for (const [settings, names] of [
    [{ CLIENT_AUTH: 'tls_client_auth' }, ['CLIENT_AUTH']],
    [{ CLIENT_AUTH: 'client_secret_basic' }, ['CLIENT_SECRET']],
    [{ CLIENT_AUTH: 'client_secret_post' }, ['CLIENT_SECRET']],
    [{ CLIENT_AUTH: 'private_key_jwt' }, ['CLIENT_KEY', 'ISSUER']],
    [{ CLIENT_AUTH: 'private_key_jwt', CLIENT_KEY: key.pem }, ['ISSUER']],
    [{ CLIENT_KEY: key.pem, DISCOVERY: 'true' }, ['ISSUER']],
    [{ CLIENT_AUTH: 'private_key_jwt', CLIENT_KEY: 'secret', ISSUER: 'http://x' }, ['CLIENT_KEY']],
    [{ ISSUER: 'nonsense', CLIENT_KEY: key.pem }, ['ISSUER']],
    [{ ISSUER_REQUIRED: 'maybe', DISCOVERY: 'yes' }, ['DISCOVERY', 'ISSUER_REQUIRED']],
    [{ CLIENT_KEY: key.pem, CLIENT_KEY_FILE: '/nowhere', ISSUER: 'http://x' }, ['CLIENT_KEY', 'CLIENT_KEY_FILE']],
  ] as const) {
    t.same(wrongOnes({ ...ALONE, ...settings }), names)
    t.notMatch(errorOf({ ...ALONE, ...settings })?.message, /BEGIN|secret$/)
  }
  const unused = { CLIENT_KEY: key.pem, ISSUER: 'http://x', CLIENT_SECRET: 'x', CLIENT_AUTH: 'none' }
  const { warnings } = readConfig({ ...ALONE, ...unused })
  t.match(warnings, [/^CLIENT_SECRET is not used/, /^CLIENT_KEY is not used/])
  t.end()
})

await test('AUTHORIZATION_PARAMS cannot smuggle a parameter that this server sets, in any spelling', (t) => {
  const reserved = [
    ...['response_type', 'client_id', 'redirect_uri', 'scope', 'state', 'code_challenge', 'code_challenge_method'],
    ...['app_id', 'sidc', 'utm_campaign', 'utm_medium', 'utm_source', 'request', 'request_uri', 'response_mode'],
    ...['client_secret', 'client_assertion', 'client_assertion_type'],
  ]
  const refused = [
    ...reserved.flatMap((name) => [`${name}=x`, `a=b&${name.toUpperCase()}=x`, `${name.replace('_', '%5F')}=x`, name]),
    ...['client.id=x', 'client_id[]=x', 'client%20id=x', 'client_id%00=x', '%20client_id=x', 'a=1&a=2', 'a=1&A=2'],
    ...['prompt=registration', 'prompt=login+Registration', 'Prompt=login', 'prompt=login&prompt=none'],
    ...[
      '=x',
      '&',
      '#a=b',
      'a=b#c',
      'a=%0d%0aX:y',
      'a=%00',
      'a=%zz',
      'a=%ff',
      'a=%C3',
      'ä=b',
      'a=b c',
      `a=${'x'.repeat(2048)}`,
    ],
  ]
  for (const params of refused) {
    t.same(wrongOnes({ ...ALONE, AUTHORIZATION_PARAMS: params }), ['AUTHORIZATION_PARAMS'], params.slice(0, 40))
  }
  for (const params of ['audience=api', '?audience=api', 'prompt=consent', 'prompt=login+consent', 'a=b;client_id=x']) {
    t.same(wrongOnes({ ...ALONE, AUTHORIZATION_PARAMS: params }), [], params)
  }
  const { authorizationParams } = readConfig({
    ...ALONE,
    AUTHORIZATION_PARAMS: 'resource=a&x=b;client_id=c&resource=d',
  }).oauth
  t.same(authorizationParams, [
    ['resource', 'a'],
    ['x', 'b;client_id=c'],
    ['resource', 'd'],
  ])
  t.end()
})

await test('Workers read the same provider from their environment as their supervisor', (t) => {
  const settings = {
    ...ALONE,
    CLIENT_AUTH: 'private_key_jwt',
    CLIENT_KEY: key.pem + newClientKey(2048).pem,
    ISSUER: 'http://127.0.0.1:1/',
    ISSUER_REQUIRED: 'true',
    PAR_URL: 'http://127.0.0.1:1/par',
    AUTHORIZATION_URL: 'http://127.0.0.1:1/authorize?p=1',
    AUTHORIZATION_PARAMS: 'audience=api',
  }
  const config = readConfig(settings)
  const discovered = {
    ...config,
    oauth: {
      ...config.oauth,
      tokenUrl: 'http://127.0.0.1:1/found',
      discovery: undefined,
      discovered: ['tokenUrl' as const],
    },
  }
  const worker = readConfig({ ...settings, DISCOVERY: 'true', ...workerEnvironment(discovered) }).oauth
  const ids = (keys: typeof worker.clientKeys): string[] | undefined => keys?.current.map(({ id }) => id)
  t.same(ids(worker.clientKeys), ids(config.oauth.clientKeys))
  t.same({ ...worker, clientKeys: undefined }, { ...discovered.oauth, clientKeys: undefined })
  t.end()
})
