import { once } from 'node:events'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { logIn, testServer, testWorld } from '../support/server/world.ts'

/** Fetches the trading accounts as a page does. */
async function accountsOf(page: JarBrowser): Promise<{ status: number; ids: string[] }> {
  const response = await page.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
  const { data = [] } = (await response.json()) as { data?: { account_id: string }[] }
  return { status: response.status, ids: data.map(({ account_id: id }) => id) }
}

for (const redis of [false, true]) {
  await test(`A user logs in, calls the API and logs out (sessions in ${redis ? 'Redis' : 'memory'})`, async (t) => {
    const { browser, server, provider, upstream } = await testWorld(t, { redis })
    const arrival = await logIn(browser, server.url)
    t.equal(arrival.url.href, `${server.url}/`)
    t.equal(arrival.hops.find(({ url }) => url.pathname === '/auth/callback')?.status, 303)

    const [session] = browser.named('__Host-session')
    t.match(session, { secure: true, httpOnly: true, sameSite: 'strict' })
    const age = session?.maxAgeSeconds ?? 0
    t.ok(age > 28_700 && age <= 28_800, 'the cookie lives until the absolute limit')

    const state = (await (await browser.fetch('/auth/session')).json()) as Record<string, unknown>
    t.match(state, { authenticated: true, scope: 'trade account_manage' })

    const accounts = await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
    t.equal(accounts.status, 200)
    t.equal(upstream.requests.at(-1)?.credential, 'bearer')
    t.equal(accounts.headers.get('set-cookie'), null)
    t.equal(accounts.headers.get('x-brand'), null)

    const before = browser.clone()
    const logout = await browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })
    t.equal(logout.status, 204)
    t.same(browser.named('__Host-'), [], 'no cookie is left')
    const stolen = await before.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
    t.equal(stolen.status, 401)
    t.equal(provider.tokenRequests(), 1)
  })
}

await test('GET /auth/callback: state_mismatch and no exchange for the state of another browser', async (t) => {
  const { browser, server, provider } = await testWorld(t)
  const form = await browser.navigate(`${server.url}/auth/login`)
  const victim = new JarBrowser()
  await victim.navigate(`${server.url}/auth/login`)
  const done = await browser.submit(form, { email: 'demo@example.test', password: 'any', action: 'continue' })
  const callback = done.hops.find(({ url }) => url.pathname === '/auth/callback')?.url
  const arrival = await victim.navigate(callback?.href ?? '')
  t.equal(arrival.url.searchParams.get('auth_error'), 'state_mismatch')
  t.equal(provider.tokenRequests(), 1)
  t.same(victim.named('__Host-session'), [])
})

await test('GET /auth/callback: 303 with access_denied and return_to when the user cancels', async (t) => {
  const { browser, server, provider } = await testWorld(t)
  const form = await browser.navigate(`${server.url}/auth/login?return_to=/chart?x=1%23top`)
  const arrival = await browser.submit(form, { action: 'cancel' })
  t.equal(arrival.url.href, `${server.url}/?auth_error=access_denied&flow=login&return_to=%2Fchart%3Fx%3D1%23top`)
  t.equal(provider.tokenRequests(), 0)
})

await test('A login as user B ends the session and the relays of user A on every instance', async (t) => {
  const { browser, server, settings } = await testWorld(t, { redis: true })
  const other = await testServer(t, settings)
  await logIn(browser, server.url)
  const ofUserA = browser.clone()
  const { ids } = await accountsOf(ofUserA)
  const cookie = browser.cookieHeader(new URL(server.url), undefined)
  const relay = new WebSocket(`ws://localhost:${other.port}/ws/trading/${ids[0]}`, {
    headers: { cookie, origin: server.url },
  })
  t.teardown(() => relay.terminate())
  await once(relay, 'open')
  const closed = once(relay, 'close')

  await logIn(browser, server.url, 'user-b@example.test')
  const [code] = (await closed) as [number]
  t.equal(code, 4401)
  t.equal((await accountsOf(ofUserA)).status, 401)
  const ofUserB = await accountsOf(browser)
  t.equal(ofUserB.status, 200)
  t.not(ofUserB.ids[0], ids[0])
})
