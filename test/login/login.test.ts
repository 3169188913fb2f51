import { test } from 'tap'
import { logIn } from '../support/parts.ts'
import { startWorld } from '../support/world.ts'

for (const redis of [false, true]) {
  await test(`A user logs in, calls the API and logs out (sessions in ${redis ? 'Redis' : 'memory'})`, async (t) => {
    const { browser, server, provider, upstream } = await startWorld(t, { redis })
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
