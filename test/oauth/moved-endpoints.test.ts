import { test, type Test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { workerEnvironment } from '../../src/config/worker-environment.ts'
import { discover } from '../../src/oauth/discovery.ts'
import { document, metadataServer, OIDC_PATH, type MetadataServer } from '../support/login/metadata-server.ts'
import { epoch, EVENTS, issuerKey, OIDC, postForm, sign } from '../support/login/oidc-world.ts'
import { logInThere, tokens } from '../support/login/token-endpoint.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer, type TestServer } from '../support/server/test-server.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { freePort } from '../../sandbox/listening.ts'
import { exactly } from '../support/exactly.ts'

/** How often the metadata was asked for. */
const asked = ({ requests }: MetadataServer): number => requests.filter((path) => path === OIDC_PATH).length
const lines = ({ log }: TestServer, text: RegExp) => log.filter(({ msg }) => text.test(msg))

/** A worker of a process that has discovered this issuer, which has a page to log in on. */
async function discoveredServer(
  t: Test,
  issuer: MetadataServer,
  named: Record<string, string> = {},
): Promise<TestServer> {
  issuer.responses[OIDC_PATH] ??= issuer.metadata()
  const port = await freePort()
  const settings = {
    ...ALONE,
    PUBLIC_URL: `http://localhost:${port}`,
    AUTH_URL: issuer.url,
    ISSUER: issuer.url,
    AUTH_STARTS_PER_MINUTE: '0',
    PORT: String(port),
    ...named,
  }
  const config = readConfig({ ...settings, DISCOVERY: 'true' })
  const found = await discover(config.oauth)
  if (found.is !== 'found') throw new Error(`discovery: ${found.is}`)
  const inherited = workerEnvironment({ ...config, oauth: { ...config.oauth, ...found.provider } })
  issuer.requests.length = 0
  return testServer(t, { ...settings, ...inherited, SESSION_SECRETS: config.secrets.current.join(',') })
}

await test('a discovered token endpoint that responds 404: the log says to restart, and the metadata is asked again once in ten minutes', async (t) => {
  const issuer = await metadataServer(t)
  const server = await discoveredServer(t, issuer)
  const login = async () => (await logInThere({ browser: new JarBrowser(), server })).url.searchParams.get('auth_error')
  const ahead = clockAhead(t)

  issuer.responses['/token'] = (request, response) => void tokens()(request, response, new URLSearchParams())
  t.equal(await login(), null)
  t.equal(asked(issuer), 0)
  delete issuer.responses['/token']
  for (let times = 0; times < 3; times++) t.equal(await login(), 'provider_unavailable')
  await until(() => lines(server, /so a restart would not help/).length === 1, 'the metadata is the same')
  t.match(lines(server, /endpoints may have moved: restart/), exactly({ level: 40, endpoint: 'tokenUrl' }))
  t.equal(lines(server, /endpoints may have moved/).length, 1)

  issuer.responses[OIDC_PATH] = issuer.metadata({ token_endpoint: `${issuer.url}/new/token` })
  ahead(9.9 * 60_000)
  await login()
  t.equal(asked(issuer), 1, 'not yet')
  ahead(0.2 * 60_000)
  await Promise.all([login(), login()])
  await until(() => lines(server, /names other endpoints than before: restart/).length === 1, 'they have moved')
  t.match(lines(server, /names other endpoints/), exactly({ level: 50, moved: ['tokenUrl'] }))
  t.equal(asked(issuer), 2)

  issuer.responses[OIDC_PATH] = document({}, 503)
  ahead(10.1 * 60_000)
  await login()
  await until(() => lines(server, /does not say whether its endpoints have moved/).length === 1)
  issuer.responses[OIDC_PATH] = document('[]')
  ahead(10.1 * 60_000)
  await login()
  await until(() => lines(server, /metadata of the provider can no longer be used: ISSUER must be/).length === 1)
})

await test('an endpoint that its own setting names, or that responds 404 without discovery, does not have the metadata asked again', async (t) => {
  const issuer = await metadataServer(t)
  const port = await freePort()
  for (const server of [
    await discoveredServer(t, issuer, { TOKEN_URL: `${issuer.url}/named` }),
    await testServer(t, { ...ALONE, PUBLIC_URL: `http://localhost:${port}`, AUTH_URL: issuer.url, PORT: String(port) }),
  ]) {
    const { search } = (await logInThere({ browser: new JarBrowser(), server })).url
    t.match(search, /provider_unavailable/)
    t.equal(lines(server, /moved/).length, 0)
  }
  t.equal(asked(issuer), 0)
})

await test('discovered keys that respond 404: the log says to restart, and where they are now', async (t) => {
  const issuer = await metadataServer(t)
  issuer.responses[OIDC_PATH] = issuer.metadata({ jwks_uri: `${issuer.url}/keys` })
  const server = await discoveredServer(t, issuer, OIDC)
  issuer.responses[OIDC_PATH] = issuer.metadata({ jwks_uri: `${issuer.url}/new/keys` })
  const claims = { iss: issuer.url, aud: ALONE.CLIENT_ID, iat: epoch(), jti: '1', events: EVENTS, sub: 'ada' }
  const token = await sign(issuerKey('first'), claims, { typ: 'logout+jwt' })
  t.equal((await postForm(server.url, { logout_token: token })).status, 503)
  await until(() => lines(server, /names other endpoints than before: restart/).length === 1, 'they have moved')
  t.match(lines(server, /endpoints may have moved: restart/), exactly({ endpoint: 'jwksUrl' }))
  t.match(lines(server, /names other endpoints/), exactly({ moved: ['jwksUrl'] }))
})
