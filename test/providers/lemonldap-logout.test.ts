import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { JarBrowser, type Arrival } from '../support/browser/jar-browser.ts'
import { isLoggedIn, sessionState } from '../support/login/token-endpoint.ts'
import { confirm, LEMONLDAP, REVOKES, rotateKeys, startLemonldap } from '../support/providers/lemonldap.ts'
import { tokenGate, type TokenGate } from '../support/providers/token-gate.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

const CALL = '/api/trading/v1/options/accounts'
const CSRF = { 'x-csrf': '1' }

/** A server, and LemonLDAP::NG with OpenID Connect. */
interface World {
  readonly url: string
  readonly provider: string
  /** Stands before its token endpoint. */
  readonly gate: TokenGate
  readonly logIn: (browser?: JarBrowser) => Promise<JarBrowser>
  readonly rotate: () => void
  /** Those that the provider has told of. */
  readonly logouts: () => number
}

async function world(t: Test, settings: Record<string, string> = {}, client = {}): Promise<World> {
  const [port, providerPort] = [await freePort(), await freePort()]
  const [url, provider] = [`http://localhost:${port}`, `http://127.0.0.1:${providerPort}`]
  const address = { port: providerPort, redirectUri: `${url}/auth/callback`, folder: t.testdir({}) }
  await startLemonldap(t, address, {
    oidcRPMetaDataOptionsBypassConsent: 1,
    oidcRPMetaDataOptionsLogoutUrl: `${url}/auth/backchannel-logout`,
    oidcRPMetaDataOptionsLogoutType: 'back',
    oidcRPMetaDataOptionsLogoutSessionRequired: 1,
    ...client,
  })
  const gate = await tokenGate(t, providerPort)
  const server = await serverProcess(t, {
    ...ALONE,
    ...LEMONLDAP.settings(provider, gate.url),
    PORT: String(port),
    PUBLIC_URL: url,
    AUTH_URL: provider,
    CLIENT_ID: 'test-client',
    OIDC: 'true',
    BACKCHANNEL_LOGOUT: 'true',
    ...settings,
  })
  t.ok(await ready(server))
  const logIn = async (browser = new JarBrowser()): Promise<JarBrowser> => {
    const arrival = await LEMONLDAP.logIn(browser, await browser.navigate(`${url}/auth/login`))
    t.equal(arrival.url.href, `${url}/`, server.output().stdout.split('\n').slice(-4).join('\n'))
    browser.page = new URL(url)
    return browser
  }
  const logouts = (): number => server.output().stdout.split('"audit":"provider_logout"').length - 1
  return { url, provider, gate, logIn, rotate: () => rotateKeys(address), logouts }
}

/** Logs out here. @returns what the browser then sees at the provider */
async function logOut(browser: JarBrowser): Promise<Arrival> {
  const response = await browser.fetch('/auth/logout?provider=true', { method: 'POST', headers: CSRF })
  return browser.navigate(((await response.json()) as { logout_url: string }).logout_url)
}

await test('A user of LemonLDAP::NG has a subject, stays after a refresh, and is asked there whether to log out', async (t) => {
  for (const answer of ['yes', 'no'] as const) {
    const { url, provider, gate, logIn, logouts } = await world(t)
    gate.expiresIn = 0.001
    const browser = await logIn()
    gate.expiresIn = 3600
    t.match(await sessionState(browser, url), { subject: `${provider}/#dwho` })
    await browser.fetch(CALL, { headers: CSRF })
    t.match(gate.refreshes, [{ status: 200 }])
    t.match(await sessionState(browser, url), { authenticated: true, subject: `${provider}/#dwho` })
    const question = await logOut(browser)
    t.notOk(await isLoggedIn(browser, url), 'the session has ended before the user answers')
    // Its own session goes on.
    if (REVOKES) await until(() => logouts() === 2, 'it tells of the revocation of both tokens, as if it were a logout')
    t.match(question.body, /logoutConfirm/)
    const arrival = await confirm(browser, question, answer)
    t.equal(arrival.url.href, `${url}/?logged_out=provider`)
    const again = await browser.navigate(`${url}/auth/login`)
    if (answer === 'yes') t.match(again.body, /name="password"/, 'and the provider has forgotten the user')
    else t.equal(again.url.href, `${url}/`)
  }
})

await test('With ID_TOKEN_HINT and its option for that, LemonLDAP::NG does not ask', async (t) => {
  const options = { oidcRPMetaDataOptionsLogoutBypassConfirm: 1 }
  const { url, logIn } = await world(t, { ID_TOKEN_HINT: 'true' }, options)
  const browser = await logIn()
  t.equal((await logOut(browser)).url.href, `${url}/?logged_out=provider`)
  t.match((await browser.navigate(`${url}/auth/login`)).body, /name="password"/)
})

await test('After a consent in the same browser a logout ends on the login page of LemonLDAP::NG', async (t) => {
  const { url, provider, logIn } = await world(t, {}, { oidcRPMetaDataOptionsBypassConsent: 0 })
  const browser = await logIn()
  const page = await confirm(browser, await logOut(browser))
  t.same([page.url.href, page.response.status], [`${provider}/oauth2`, 200])
  t.match(page.body, /name="password"/)
  t.notOk(await isLoggedIn(browser, url))
  await logIn(browser)
  t.equal(
    (await confirm(browser, await logOut(browser))).url.href,
    `${url}/?logged_out=provider`,
    'the consent is remembered',
  )
})

await test('A key that LemonLDAP::NG has made since is fetched at the next login', async (t) => {
  const { provider, logIn, rotate } = await world(t)
  await logIn()
  const keys = async (): Promise<string> => (await fetch(`${provider}/oauth2/jwks`)).text()
  const before = await keys()
  rotate()
  await until(async () => (await keys()) !== before, 'it has read its new configuration')
  await logIn()
})

await test('A logout at LemonLDAP::NG ends the session, at once where it tells of it, else at the next refresh', async (t) => {
  const { url, provider, gate, logIn, logouts } = await world(t)
  const metadata = await (await fetch(`${provider}/.well-known/openid-configuration`)).json()
  gate.expiresIn = 0.001
  const [browser, other] = [await logIn(), await logIn()]
  await browser.navigate(`${provider}/?logout=1`)
  if ((metadata as Record<string, unknown>)['backchannel_logout_supported'] === true) {
    await until(() => logouts() === 1, 'the logout token has come')
  } else {
    t.ok(await isLoggedIn(browser, url))
    browser.page = new URL(url)
    t.equal((await browser.fetch(CALL, { headers: CSRF })).status, 401)
  }
  t.notOk(await isLoggedIn(browser, url))
  t.ok(await isLoggedIn(other, url))
})
