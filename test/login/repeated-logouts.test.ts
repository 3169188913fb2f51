import { test } from 'tap'
import { IDENTIFIED, IDENTITY } from '../support/login/identity.ts'
import { isLoggedIn } from '../support/login/token-endpoint.ts'
import { CommandProxy } from '../support/redis/command-proxy.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until, within } from '../support/time/until.ts'
import { logOut } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

for (const where of ['the same', 'another'] as const) {
  await test(`POST /auth/logout?everywhere=true: when the reply to the last end is lost, a repetition at ${where} instance gets 204, and leaves no session`, async (t) => {
    const redis = await testRedis(t)
    const proxy = await CommandProxy.start(t, redis)
    const settings = { ...IDENTITY, REDIS_URL: proxy.url }
    const { server, instance, user } = await startWorld(t, { ...IDENTIFIED, settings })
    const other = await instance({ REDIS_URL: redis.url })
    const { browser: first } = await user('CR1')
    const { browser } = await user('CR1')
    let ends = 0
    const lost = proxy.suffer('gets no reply', (sent) => sent.includes(':tombstone') && ++ends === 2)
    t.equal((await logOut(browser, server.url, '?everywhere=true')).status, 503)
    await within(lost, 'the reply is lost')
    await until(
      () => server.log.filter(({ audit }) => audit === 'session_ended').length === 2,
      'both ends are recorded',
    )
    const { browser: late } = await user('CR1')
    const at = where === 'another' ? other : server
    const cookie = browser.cookieHeader(new URL(server.url), new URL(server.url))
    const headers = { cookie, 'x-csrf': '1', origin: server.url, 'sec-fetch-site': 'same-origin' }
    const again = await fetch(`${at.url}/auth/logout?everywhere=true`, { method: 'POST', headers })
    t.equal(again.status, 204)
    for (const each of [first, browser, late]) t.notOk(await isLoggedIn(each, at.url))
  })
}

await test('POST /auth/logout?everywhere=true: a repetition revokes the tokens when the instance that has ended the session does not hear of it', async (t) => {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  const settings = { ...IDENTITY, REDIS_URL: proxy.url }
  const { server, instance, user, provider } = await startWorld(t, { ...IDENTIFIED, settings })
  const other = await instance({ REDIS_URL: redis.url })
  const { browser, call } = await user('CR1')
  const lost = proxy.suffer('gets no reply', (sent) => sent.includes(':tombstone')).then(() => (proxy.isDown = true))
  t.equal((await logOut(browser, server.url, '?everywhere=true')).status, 503)
  await within(lost, 'the reply is lost')
  t.equal((await call('POST', '/auth/logout?everywhere=true', { at: other })).status, 204)
  await until(() => provider.revoked.length > 0, 'the token is revoked')
  t.same(provider.revoked, ['of-CR1'])
  t.match(
    other.log.filter(({ audit }) => audit === 'session_ended'),
    [{ reason: 'logout' }],
  )
  // A server that stops looks first for the end of which it has not heard.
  proxy.isDown = false
  await server.close()
  t.equal(server.log.filter(({ audit }) => audit === 'session_ended').length, 0, 'it is recorded once')
  t.equal(provider.revoked.length, 1, 'and revoked once')
})

await test('POST /auth/logout?everywhere=true: a repetition with a cookie that the browser has kept is no 409', async (t) => {
  const { server, user } = await startWorld(t, IDENTIFIED)
  const { browser } = await user('CR1')
  const cookies = new Map(browser.cookies)
  t.equal((await logOut(browser, server.url, '?everywhere=true')).status, 204)
  for (const [name, cookie] of cookies) browser.cookies.set(name, cookie)
  t.equal((await logOut(browser, server.url, '?everywhere=true')).status, 204)
  const { browser: alone } = await user('CR1')
  const own = new Map(alone.cookies)
  t.equal((await logOut(alone, server.url)).status, 204)
  for (const [name, cookie] of own) alone.cookies.set(name, cookie)
  t.equal((await logOut(alone, server.url, '?everywhere=true')).status, 409, 'only what was asked before')
})
