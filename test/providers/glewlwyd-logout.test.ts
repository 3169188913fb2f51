import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { JarBrowser, type Arrival } from '../support/browser/jar-browser.ts'
import { isLoggedIn, sessionState } from '../support/login/token-endpoint.ts'
import { consentAtGlewlwyd, GLEWLWYD, startGlewlwyd } from '../support/providers/glewlwyd.ts'
import { tokenGate, type TokenGate } from '../support/providers/token-gate.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

/** A server, and Glewlwyd with OpenID Connect and both logouts. */
interface World {
  readonly url: string
  readonly provider: string
  /** Stands before its token endpoint. */
  readonly gate: TokenGate
  readonly logIn: (browser?: JarBrowser) => Promise<JarBrowser>
  readonly log: () => string
}

async function world(t: Test, settings: Record<string, string> = {}, client = {}): Promise<World> {
  const [port, providerPort] = [await freePort(), await freePort()]
  const [url, provider] = [`http://localhost:${port}`, `http://127.0.0.1:${providerPort}`]
  const address = { port: providerPort, redirectUri: `${url}/auth/callback`, folder: t.testdir({}) }
  await startGlewlwyd(t, address, {
    plugin: {
      'session-cookie-name': 'session',
      'session-cookie-expiration': 86_400,
      'session-management-allowed': true,
      'back-channel-logout-allowed': true,
    },
    client: {
      post_logout_redirect_uris: [`${url}/auth/logged-out`],
      backchannel_logout_uri: `${url}/auth/backchannel-logout`,
      ...client,
    },
  })
  const gate = await tokenGate(t, providerPort)
  const server = await serverProcess(t, {
    ...ALONE,
    ...GLEWLWYD.settings(provider, gate.url),
    PORT: String(port),
    PUBLIC_URL: url,
    AUTH_URL: provider,
    CLIENT_ID: 'test-client',
    OIDC: 'true',
    OAUTH_SCOPE: 'openid trade',
    BACKCHANNEL_LOGOUT: 'true',
    ...settings,
  })
  t.ok(await ready(server))
  const logIn = async (browser = new JarBrowser()): Promise<JarBrowser> => {
    const arrival = await consentAtGlewlwyd(browser, await browser.navigate(`${url}/auth/login`))
    t.equal(arrival.url.href, `${url}/`)
    browser.page = new URL(url)
    return browser
  }
  return { url, provider, gate, logIn, log: () => server.output().stdout }
}

/** Logs out here. @returns what the browser then sees at the provider */
async function logOut(browser: JarBrowser): Promise<Arrival> {
  const options = { method: 'POST', headers: { 'x-csrf': '1' } }
  const response = await browser.fetch('/auth/logout?provider=true', options)
  return browser.navigate(((await response.json()) as { logout_url: string }).logout_url)
}

/** What Glewlwyd's page does when the user says yes, with the parameters that the page has. */
async function confirm(browser: JarBrowser, { searchParams }: URL): Promise<string> {
  await browser.fetch(`/api/oidc/session/${searchParams.get('sid')}`, { method: 'DELETE' })
  await browser.fetch('/api/auth/', { method: 'DELETE' })
  return searchParams.get('callback_url') ?? ''
}

await test('A user of Glewlwyd logs in, has a subject, stays after a refresh, and logs out here and there with ID_TOKEN_HINT', async (t) => {
  const { url, provider, gate, logIn } = await world(t, { ID_TOKEN_HINT: 'true' })
  gate.expiresIn = 0.001
  const browser = await logIn()
  gate.expiresIn = 3600
  const { subject } = await sessionState(browser, url)
  t.match(subject, new RegExp(`^${provider}/api/oidc#\\w+$`))
  await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
  t.match(gate.refreshes, [{ status: 200 }])
  t.match(await sessionState(browser, url), { authenticated: true, subject })
  const question = await logOut(browser)
  t.notOk(await isLoggedIn(browser, url), 'the session has ended before the user says yes there')
  t.match(question.url.href, /\/login\.html\?.*prompt=end_session/)
  const arrival = await browser.navigate(await confirm(browser, question.url))
  t.equal(arrival.url.href, `${url}/?logged_out=provider`)
  const again = await browser.navigate(`${url}/auth/login`)
  t.match(again.url.href, /\/login\.html\?/, 'and Glewlwyd has forgotten the user')
})

await test('Without ID_TOKEN_HINT a user of Glewlwyd is logged out here, and sees an empty page there', async (t) => {
  const { url, provider, logIn } = await world(t)
  const browser = await logIn()
  const { url: last, response, body } = await logOut(browser)
  t.notOk(await isLoggedIn(browser, url))
  t.same([last.origin + last.pathname, response.status, body], [`${provider}/api/oidc/end_session`, 200, ''])
})

await test('A logout at Glewlwyd ends the sessions of that browser, or of the user where no session is required', async (t) => {
  for (const hasSid of [true, false]) {
    const client = hasSid ? { backchannel_logout_session_required: 'true' } : {}
    const { url, logIn, log } = await world(t, { ID_TOKEN_HINT: 'true' }, client)
    const [browser, other] = [await logIn(), await logIn()]
    // Only a logout from a client leads to the page that ends a session there, so this is another session of the browser.
    const second = browser.clone()
    for (const [key, { host }] of second.cookies) if (host === 'localhost') second.cookies.delete(key)
    await logIn(second)
    const question = await logOut(second)
    t.ok(await isLoggedIn(browser, url))
    await confirm(second, question.url)
    await until(() => log().includes('"audit":"provider_logout"'), 'the logout token has come')
    t.notOk(await isLoggedIn(browser, url))
    t.equal(await isLoggedIn(other, url), hasSid)
  }
})
