import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { epoch, oidcWorld, type Claims } from '../support/login/oidc-world.ts'
import { isLoggedIn, startLogin, tokens } from '../support/login/token-endpoint.ts'
import { testServer } from '../support/server/test-server.ts'
import { exactly } from '../support/exactly.ts'
import { until } from '../support/time/until.ts'

await test('POST /auth/backchannel-logout ends the sessions that the token names, by sid, by sub, or by both', async (t) => {
  const { server, user, postLogout, logoutToken } = await oidcWorld(t)
  const past = { iat: epoch(-10) }
  const { browser: one } = await user('ada', { sid: 's1', ...past })
  const { browser: two } = await user('ada', { sid: 's2', ...past })
  const { browser: without } = await user('ada', past)
  const { browser: other } = await user('bob', { sid: 's3', ...past })
  const live = async (): Promise<boolean[]> =>
    Promise.all([one, two, without, other].map((browser) => isLoggedIn(browser, server.url)))
  const logOut = async (claims: Claims): Promise<void> => {
    const response = await postLogout(await logoutToken(claims))
    t.equal(response.status, 200, await response.text())
    t.equal(response.headers.get('cache-control'), 'no-store')
  }
  await logOut({ sid: 's9' })
  await logOut({ sub: 'ada', iat: epoch(-20) })
  t.same(await live(), [true, true, true, true], 'nobody matches: an unknown sid, and a sub with only later logins')
  await logOut({ sid: 's1', sub: 'ada' })
  t.same(await live(), [false, true, true, true], 'a sid with a sub ends one session')
  await logOut({ sid: 's2' })
  t.same(await live(), [false, false, true, true], 'a sid alone, too')
  await logOut({ sub: 'ada', iat: past.iat })
  t.same(await live(), [false, false, false, true], 'a sub ends all that are not later')
  await logOut({ sub: 'ada', iat: past.iat })
  const lines = server.log.filter(({ audit }) => audit === 'provider_logout')
  t.same(
    lines.map(({ ended }) => ended),
    [0, 0, 1, 1, 1, 0],
    'each leaves a line, a repetition too',
  )
  t.match(
    server.log.filter(({ audit }) => audit === 'session_ended'),
    exactly(...[1, 2, 3].map(() => ({ reason: 'revoked', subject: /^[\w-]{10}$/ }))),
  )
})

await test('BACKCHANNEL_WITHOUT_SID=subject: a token with sub and sid also ends sessions of the subject that know no sid', async (t) => {
  const world = await oidcWorld(t, { settings: { BACKCHANNEL_WITHOUT_SID: 'subject' } })
  const { server } = world
  const { browser: without } = await world.user('ada', { iat: epoch(-10) })
  const { browser: later } = await world.user('ada', { iat: epoch(20) })
  const { browser: another } = await world.user('ada', { sid: 's2', iat: epoch(-10) })
  t.equal((await world.postLogout(await world.logoutToken({ sub: 'ada', sid: 's1' }))).status, 200)
  const browsers = [without, later, another]
  t.same(await Promise.all(browsers.map((browser) => isLoggedIn(browser, server.url))), [false, true, true])
  const { arrival } = await world.user('ada', { iat: epoch(-10) })
  t.match(arrival.url.search, /login_failed/, 'and a login that began before it')
})

await test('POST /auth/backchannel-logout: a replay after a new login leaves the new one alone', async (t) => {
  const { server, user, logoutToken, postLogout } = await oidcWorld(t)
  for (const named of [{ sub: 'ada' }, { sid: 'old' }]) {
    await user('ada', { sid: 'old', iat: epoch(-10) })
    const token = await logoutToken({ ...named, iat: epoch(-5) })
    t.equal((await postLogout(token)).status, 200)
    const { browser } = await user('ada', { sid: 'new' })
    t.equal((await postLogout(token)).status, 200)
    t.ok(await isLoggedIn(browser, server.url), JSON.stringify(named))
  }
})

await test('POST /auth/backchannel-logout: a login that began after it lives, with the same sid as well', async (t) => {
  const { server, user, logoutToken, postLogout } = await oidcWorld(t)
  // LemonLDAP::NG 2.23 tells of the revocation of a token so, and its own session goes on.
  await user('ada', { sid: 's1' })
  t.equal((await postLogout(await logoutToken({ sub: 'ada', sid: 's1' }))).status, 200)
  const heardAt = performance.now()
  await until(() => performance.now() - heardAt > 10, 'clocks can tell what came first')
  const { browser } = await user('ada', { sid: 's1' })
  t.ok(await isLoggedIn(browser, server.url))
})

await test('POST /auth/backchannel-logout: a login that is being made at that moment does not survive', async (t) => {
  const world = await oidcWorld(t)
  const { idToken } = world
  // Each with another user, so that no note of an earlier one counts.
  const cases = [{ sub: 'ada' }, { sid: 's2' }, { sub: 'cleo', sid: 's3' }]
  for (const [at, named] of cases.entries()) {
    // Its token is issued, and the logout comes before the login has read it.
    world.idToken = async (claims) => {
      const text = await idToken(claims)
      t.equal((await world.postLogout(await world.logoutToken(named))).status, 200)
      return text
    }
    const { browser, arrival } = await world.user(['ada', 'bob', 'cleo'][at] ?? '', { sid: `s${at + 1}` })
    t.match(arrival.url.search, /auth_error=login_failed/, JSON.stringify(named))
    t.notOk(await isLoggedIn(browser, world.server.url))
  }
  t.match(
    world.server.log.findLast(({ audit }) => audit === 'login_failed'),
    { reason: 'ended' },
  )
})

await test('Without BACKCHANNEL_LOGOUT, or without OIDC, /auth/backchannel-logout is 404', async (t) => {
  const world = await oidcWorld(t, { settings: { BACKCHANNEL_LOGOUT: '' } })
  t.equal((await world.postLogout(await world.logoutToken({ sub: 'ada' }))).status, 404)
  t.equal((await fetch(`${world.server.url}/auth/logged-out`, { redirect: 'manual' })).status, 303)
  const plain = await testServer(t, { ...world.settings, OIDC: '' })
  t.equal((await world.postLogout(await world.logoutToken({ sub: 'ada' }), plain)).status, 404)
  t.equal((await fetch(`${plain.url}/auth/logged-out`, { redirect: 'manual' })).status, 404)
})

await test('A logout at one instance closes the sockets of the session at another', async (t) => {
  const world = await oidcWorld(t, { redis: true })
  const other = await testServer(t, world.settings)
  for (const [sid, named] of [
    ['s1', { sid: 's1' }],
    ['s2', { sub: 'ada' }],
  ] as const) {
    const user = await world.user('ada', { sid, iat: epoch(-5) })
    const socket = user.socket('/ws/session', { at: other })
    await socket.count(1)
    t.equal((await world.postLogout(await world.logoutToken({ ...named, iat: epoch(-5) }))).status, 200)
    t.match(await socket.closed, { code: 4401 })
    t.match(JSON.parse(socket.texts.at(-1) ?? ''), { event: 'ended', reason: 'revoked' })
  }
})

await test('POST /auth/backchannel-logout: 503 while the store does not answer, and the same token ends the session later', async (t) => {
  const world = await oidcWorld(t, { redis: true })
  const other = await testServer(t, world.settings)
  const { browser } = await world.user('ada', { sid: 's1' })
  const token = await world.logoutToken({ sid: 's1' })
  world.redis?.process.kill('SIGSTOP')
  const stopped = await world.postLogout(token)
  t.match([stopped.status, stopped.headers.get('retry-after')], [503, /^\d+$/])
  t.match(await stopped.json(), { code: 'session_store_unavailable' })
  world.redis?.process.kill('SIGCONT')
  const again = await world.postLogout(token, other)
  t.equal(again.status, 200)
  t.notOk(await isLoggedIn(browser, other.url))
})

await test('Sessions from before OIDC end when it is switched on, and those from before BACKCHANNEL_LOGOUT obey it', async (t) => {
  const world = await oidcWorld(t, { redis: true, settings: { BACKCHANNEL_LOGOUT: '' } })
  const { browser } = await world.user('ada', { sid: 's1' })
  const on = await testServer(t, { ...world.settings, BACKCHANNEL_LOGOUT: 'true' })
  t.ok(await isLoggedIn(browser, on.url))
  t.equal((await world.postLogout(await world.logoutToken({ sid: 's1' }), on)).status, 200)
  t.notOk(await isLoggedIn(browser, world.server.url))

  const before = await testServer(t, { ...world.settings, OIDC: '', BACKCHANNEL_LOGOUT: '' })
  world.provider.behaviour = tokens()
  const early = new JarBrowser()
  await (await startLogin({ browser: early, server: before })).finish()
  t.ok(await isLoggedIn(early, before.url))
  t.notOk(await isLoggedIn(early, on.url), 'nobody knows whose it is')
  t.ok(await isLoggedIn(early, before.url), 'instances without the setting still know it')
})
