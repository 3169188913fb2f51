import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { gated } from '../support/login/gated-provider.ts'
import { isLoggedIn, tokens, scripted } from '../support/login/token-endpoint.ts'
import { CommandProxy } from '../support/redis/command-proxy.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { testRedis, testServer, type TestServer } from '../support/server/test-server.ts'
import { until, within } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'
import { exactly } from '../support/exactly.ts'

/** Two instances, the first of which may lose replies of Redis, and a user who has logged in. */
async function losingWorld(t: Test) {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  const world = await startWorld(t, { provider: scripted, settings: { REDIS_URL: proxy.url } })
  const { server, settings, provider, browser } = world
  provider.behaviour = tokens({ refresh_token: 'the-refresh-token' })
  const own = { ...settings, PUBLIC_URL: server.url, REDIS_URL: redis.url, PORT: String(await freePort()) }
  const other = await testServer(t, own)
  await world.logIn()
  const cookie = browser.cookieHeader(new URL(server.url), new URL(server.url))
  const logOut = async (at: TestServer): Promise<number> => {
    const headers = { cookie, 'x-csrf': '1', origin: server.url, 'sec-fetch-site': 'same-origin' }
    return (await fetch(`http://127.0.0.1:${at.port}/auth/logout`, { method: 'POST', headers })).status
  }
  const servers = [server, other]
  const ended = () => servers.flatMap(({ log }) => log.filter(({ audit }) => audit === 'session_ended'))
  const counted = async (): Promise<string[]> => {
    const texts = await Promise.all(servers.map(async ({ opsUrl }) => (await fetch(`${opsUrl}/metrics`)).text()))
    return texts.flatMap((text) => text.match(/(?<=bff_sessions_ended_total)\S+ [1-9]\d*/g) ?? [])
  }
  return { ...world, redis, proxy, other, logOut, ended, counted }
}

const connections = ({ log }: TestServer): number =>
  log.filter(({ msg }) => msg === 'the session store is connected').length

const buries = (sent: string): boolean => sent.includes(':tombstone')

for (const where of ['the same', 'another'] as const) {
  await test(`POST /auth/logout: when the reply to the end of the session is lost, a repetition at ${where} instance gets 204, and the end is recorded once`, async (t) => {
    const { server, other, proxy, provider, logOut, ended, counted } = await losingWorld(t)
    const lost = proxy.suffer('gets no reply', buries)
    t.equal(await logOut(server), 503)
    await within(lost, 'the reply is lost')
    // With the other one, the first one does not hear of the store for as long.
    const isOther = where === 'another'
    proxy.isDown = isOther
    const at = isOther ? other : server
    await until(async () => (await logOut(at)) === 204, 'the repetition succeeds')
    await until(() => provider.revoked.length > 1, 'its tokens are revoked')
    proxy.isDown = false
    await until(() => connections(server) > 1, 'the store is back')
    t.equal(await logOut(server), 204)
    t.same(provider.revoked, ['the-refresh-token', 'the-access-token'])
    t.match(ended(), exactly({ reason: 'logout', session: String, reqId: String }))
    t.equal(other.log.filter(({ audit }) => audit === 'session_ended').length, Number(isOther))
    t.same(await counted(), ['{reason="logout"} 1'])
  })
}

for (const [what, meant] of [
  ['the lock for a refresh', (sent: string) => sent.includes(':refresh') && sent.includes("'NX'")],
  ['the read under the lock', (sent: string) => sent.startsWith('GET bff:1:session:')],
] as const) {
  await test(`GET /api: when the reply to ${what} is lost, calls succeed on both instances once the store is back`, async (t) => {
    const redis = await testRedis(t)
    const proxy = await CommandProxy.start(t, redis)
    const settings = { REDIS_URL: proxy.url }
    const world = await startWorld(t, { provider: gated(), upstream: 'sandbox', settings })
    const { provider: gate, server } = world
    const other = await world.instance({ REDIS_URL: redis.url })
    gate.expiresIn = 0.001
    await world.logIn()
    gate.expiresIn = undefined
    const call = async (at: TestServer): Promise<number> => (await world.call('GET', ACCOUNTS, { at })).status
    const isLocked = (sent: string): boolean => what === 'the lock for a refresh' || hasLock(sent)
    let locks = 0
    const hasLock = (sent: string): boolean => (locks += Number(sent.includes("'NX'"))) > 0
    const lost = proxy.suffer('gets no reply', (sent) => isLocked(sent) && meant(sent))
    t.equal(await call(server), 503)
    await within(lost, 'the reply is lost')
    const lostAt = performance.now()
    t.equal(await call(other), 200, 'the other instance does not wait until the lock expires')
    await until(async () => (await call(server)) === 200, 'the first one has its store again')
    t.ok(performance.now() - lostAt < 12_000, 'the lock would have lasted for 16 s')
    t.equal(gate.refreshes.length, 1)
  })
}

await test('GET /auth/callback: when the reply to the beginning is lost, the browser may come again, and the code is exchanged once', async (t) => {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  const world = await startWorld(t, { provider: scripted, settings: { REDIS_URL: proxy.url } })
  const { server, provider, browser } = world
  const login = await world.startLogin()
  const lost = proxy.suffer('gets no reply', (sent) => sent.includes('PXAT') && sent.includes('bff:1:login:'))
  t.match((await login.finish()).url.search, /error=try_later/)
  await within(lost, 'the reply is lost')
  t.equal(provider.forms.length, 0)
  await until(() => connections(server) > 1, 'the store is back')
  const again = await login.finish()
  t.notMatch(again.url.search, /error/)
  t.ok(await isLoggedIn(browser, server.url))
  t.equal(provider.forms.length, 1)
})

await test('GET /auth/callback: when the reply to the creation of the session is lost, no session is left that nobody has', async (t) => {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  const world = await startWorld(t, { provider: scripted, settings: { REDIS_URL: proxy.url } })
  const client = await storeClient(t, { redis })
  const login = await world.startLogin()
  const lost = proxy.suffer('gets no reply', (sent) => sent.startsWith('SET bff:1:session:'))
  t.match((await login.finish()).url.search, /error=try_later/)
  await within(lost, 'the reply is lost')
  await until(async () => (await client.keys('*:session:*')).length === 0, 'it is gone')
  t.notOk(await isLoggedIn(world.browser, world.server.url))
})
