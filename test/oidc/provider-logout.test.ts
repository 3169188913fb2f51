import { test } from 'tap'
import { createClient } from '../../client/dist/client.js'
import { logOutAtProvider } from '../../client/dist/client/sessions.js'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { pageOptions } from '../support/client/page-client.ts'
import { oidcWorld } from '../support/login/oidc-world.ts'
import type { World } from '../support/world.ts'
import { confirmLogout, openIdWorld } from '../support/login/openid-provider.ts'
import { isLoggedIn, sessionState } from '../support/login/token-endpoint.ts'
import { logIn } from '../support/parts.ts'
import { until } from '../support/time/until.ts'

/** Logs out by a script of a page, as the package does. */
async function logOut(browser: JarBrowser, url: string, query = '?provider=true'): Promise<Response> {
  browser.page = new URL(url)
  return browser.fetch(`/auth/logout${query}`, { method: 'POST', headers: { 'x-csrf': '1' } })
}

async function addressOf(response: Response): Promise<URL> {
  return new URL(((await response.json()) as { logout_url: string }).logout_url)
}

async function loggedIn({ server }: World): Promise<JarBrowser> {
  const browser = new JarBrowser()
  await logIn(browser, server.url)
  return browser
}

for (const hint of ['', 'true']) {
  const how = hint === '' ? 'without a hint' : 'with ID_TOKEN_HINT'
  await test(`A user logs in at a real provider, and out here and there, ${how}`, async (t) => {
    const world = await openIdWorld(t, { settings: { ID_TOKEN_HINT: hint, IDENTITY_CLAIMS: 'name,email_verified' } })
    const { server, provider } = world
    const browser = await loggedIn(world)
    const state = await sessionState(browser, server.url)
    t.match(state, {
      subject: `${provider.url}#user-demo`,
      claims: { name: 'Name of user-demo', email_verified: true },
    })
    const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: object }
    t.match(Object.keys(paths).join(), '/auth/logged-out')
    t.match(Object.keys(paths).join(), '/auth/backchannel-logout')
    const client = createClient({ baseUrl: server.url, ...pageOptions(browser, server.url, server.url) })
    t.teardown(() => client.close())
    await client.session.check()
    t.match(client.session.get(), { status: 'active', claims: { name: 'Name of user-demo', email_verified: true } })
    const address = new URL((await logOutAtProvider(client)) ?? '')
    t.match(client.session.get(), { status: 'anonymous', reason: 'logout' })
    t.notOk(await isLoggedIn(browser, server.url), 'the session has ended before the page goes anywhere')
    t.match(Object.fromEntries(address.searchParams), {
      client_id: 'test-client',
      post_logout_redirect_uri: `${server.url}/auth/logged-out`,
      state: /^[\w-]{22}$/,
    })
    t.equal(address.searchParams.has('id_token_hint'), hint === 'true')
    const question = await browser.navigate(address.href)
    t.match(question.body, /Do you want to log out/, 'the provider asks in both cases')
    const arrival = await confirmLogout(browser, question)
    t.equal(arrival.url.href, `${server.url}/?logged_out=provider`)
    const again = await browser.navigate(`${server.url}/auth/login`)
    t.match(again.body, /password/, 'and has forgotten the user')
  })
}

await test('The provider ends the session when the user logs out there, by sid, and when it names only the user', async (t) => {
  for (const hasSid of [true, false]) {
    const world = await openIdWorld(t, { client: { backchannel_logout_session_required: hasSid } })
    const browser = await loggedIn(world)
    const other = await loggedIn(world)
    const question = await browser.navigate(`${world.provider.url}/session/end`)
    await confirmLogout(browser, question)
    t.notOk(await isLoggedIn(browser, world.server.url))
    t.equal(await isLoggedIn(other, world.server.url), hasSid, 'a sid is that of one browser')
    t.match(
      world.server.log.findLast(({ audit }) => audit === 'provider_logout'),
      { ended: hasSid ? 1 : 2 },
    )
  }
})

await test('A user who logs out here but not at the provider is logged out here, and no logout of another login follows', async (t) => {
  const world = await openIdWorld(t)
  const browser = await loggedIn(world)
  const address = await addressOf(await logOut(browser, world.server.url))
  const arrival = await confirmLogout(browser, await browser.navigate(address.href), 'no')
  t.equal(arrival.url.href, `${world.server.url}/?logged_out=provider`)
  t.notOk(await isLoggedIn(browser, world.server.url))
  const again = await loggedIn(world)
  t.ok(await isLoggedIn(again, world.server.url))
})

await test('A refresh gets a new ID token of the same user, and the session goes on', async (t) => {
  const world = await openIdWorld(t, { accessTokenSeconds: 2 })
  const browser = await loggedIn(world)
  const before = await sessionState(browser, world.server.url)
  browser.page = new URL(world.server.url)
  const call = async (): Promise<number> =>
    (await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })).status
  const requests = world.provider.tokenRequests()
  await until(async () => (await call()) === 200 && world.provider.tokenRequests() > requests, 'a refresh')
  t.equal(await call(), 200)
  const after = await sessionState(browser, world.server.url)
  t.same([after['subject'], after['session']], [before['subject'], before['session']])
})

await test('POST /auth/logout?provider=true: an address without a session too, and none without an endpoint', async (t) => {
  const { server, user } = await oidcWorld(t)
  const stranger = await logOut(new JarBrowser(), server.url)
  t.equal(stranger.status, 200)
  const address = await addressOf(stranger)
  t.equal(address.searchParams.get('p'), '1', 'the query of the endpoint stays')
  t.not(
    address.searchParams.get('state'),
    (await addressOf(await logOut(new JarBrowser(), server.url))).searchParams.get('state'),
  )
  t.equal((await logOut(new JarBrowser(), server.url, '')).status, 204)
  for (const query of ['?provider=1', '?provider', '?provider=true&provider=true']) {
    t.equal((await logOut(new JarBrowser(), server.url, query)).status, 400, query)
  }
  const { browser } = await user('ada', { sid: 's1' })
  const { browser: other } = await user('ada', { sid: 's2' })
  t.equal((await logOut(browser, server.url, '?provider=true&everywhere=true')).status, 200)
  t.notOk(await isLoggedIn(other, server.url))
  t.equal((await logOut(new JarBrowser(), server.url, '?provider=true&everywhere=true')).status, 409)
  const without = await oidcWorld(t, { settings: { END_SESSION_URL: '' } })
  t.equal((await logOut(new JarBrowser(), without.server.url)).status, 204)
})

await test('POST /auth/logout?provider=true: no hint that would make the address too long', async (t) => {
  const world = await oidcWorld(t, { settings: { ID_TOKEN_HINT: 'true' } })
  for (const [length, hasHint] of [
    [4000, true],
    [9000, false],
  ] as const) {
    const { browser } = await world.user('ada', { groups: 'x'.repeat(length) })
    const address = await addressOf(await logOut(browser, world.server.url))
    t.equal(address.searchParams.has('id_token_hint'), hasHint, `${length} bytes`)
  }
})

await test('POST /auth/logout?provider=true: 503 and no address while the store is down', async (t) => {
  const world = await oidcWorld(t, { redis: true })
  const { browser } = await world.user('ada')
  await world.redis?.close()
  const response = await logOut(browser, world.server.url)
  t.equal(response.status, 503)
  t.notMatch(await response.text(), /logout_url/)
})

await test('GET /auth/logged-out goes to the frontend and changes nothing', async (t) => {
  const world = await oidcWorld(t)
  const { browser } = await world.user('ada')
  const headers = { cookie: browser.cookieHeader(new URL(world.server.url), undefined), 'sec-fetch-dest': 'document' }
  const response = await fetch(`${world.server.url}/auth/logged-out?state=x`, { headers, redirect: 'manual' })
  t.equal(response.status, 303)
  t.equal(response.headers.get('location'), `${world.server.url}/?logged_out=provider`)
  t.same(response.headers.getSetCookie(), [])
  t.ok(await isLoggedIn(browser, world.server.url))
  t.equal((await fetch(`${world.server.url}/auth/logged-out`, { method: 'HEAD' })).status, 405)
})
