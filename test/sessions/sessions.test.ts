import { test } from 'tap'
import { huntTokens } from '../support/telemetry/token-hunt.ts'
import type { JarBrowser } from '../support/browser/jar-browser.ts'
import { storedSessions } from '../support/sessions/stored-sessions.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'

/** Calls the API from the page, or on the instance with this address, as behind a balancer. */
async function accounts(browser: JarBrowser, url?: string): Promise<Response> {
  const there = url === undefined ? browser : browser.clone()
  if (url !== undefined) there.page = new URL(url)
  return there.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })
}

await test('a session that one instance ends is refused by every instance', async (t) => {
  const world = await startWorld(t, { redis: true })
  const second = await world.instance()
  const { browser } = world
  const client = await world.storeClient()
  const deadOnSecond = async (): Promise<void> => {
    await until(async () => (await accounts(copy, second.url)).status === 401)
    t.pass('the other instance refuses the session')
  }
  let copy = browser
  for (const end of [
    () => browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } }),
    async () => client.del(await storedSessions(client)),
    () => client.flushAll(),
  ]) {
    await world.visitor(browser).logIn()
    copy = browser.clone()
    t.equal((await accounts(copy, second.url)).status, 200)
    t.equal((await accounts(copy)).status, 200)
    await end()
    await deadOnSecond()
    await until(async () => (await accounts(copy)).status === 401)
  }
})

await test('Redis has no plain secret and no key without an expiry', async (t) => {
  const world = await startWorld(t, { redis: true, provider: { refreshTokens: true } })
  await world.browser.navigate(`${world.server.url}/auth/login`)
  await world.logIn()
  const client = await world.storeClient()
  const keys = await client.keys('*')
  t.ok(keys.length >= 3, `${keys.length} keys`)
  const cookies = world.browser.named('__Host-').map(({ value }) => value)
  const secrets = [
    ...world.provider.issued,
    ...cookies.flatMap((value) => [value, value.split('.')[0] ?? '']),
    ...world.provider.authorizations.map(({ state = '' }) => state),
    SECRETS,
  ]
  for (const key of keys) {
    t.ok((await client.pTTL(key)) > 0, 'the key expires')
    const value = (await client.get(key)) ?? ''
    const bytes = Buffer.from(value.split('.').at(-1) ?? '', 'base64url').toString('latin1')
    t.same(
      huntTokens(
        [
          { where: 'key', text: key },
          { where: 'value', text: value + bytes },
        ],
        secrets,
      ),
      [],
    )
  }
})

await test('GET /api prolongs a session, GET /auth/session does not, and an unused session ends', async (t) => {
  const { browser } = await startWorld(t, { user: 'demo', redis: true, settings: { SESSION_IDLE_SECONDS: '2' } })
  const idleEnd = async (): Promise<number> => {
    const state = (await (await browser.fetch('/auth/session')).json()) as { idle_expires_at: number }
    return state.idle_expires_at
  }
  const first = await idleEnd()
  await until(async () => {
    await accounts(browser)
    return (await idleEnd()) > first
  })
  t.pass('the use moved the idle limit')
  await until(async () => {
    const response = (await (await browser.fetch('/auth/session')).json()) as { authenticated: boolean }
    return !response.authenticated
  })
  t.equal((await accounts(browser)).status, 401, 'GET /auth/session does not prolong it')
})

await test('a session in use ends at SESSION_MAX_SECONDS', async (t) => {
  const world = await startWorld(t, { user: 'demo', redis: true, settings: { SESSION_MAX_SECONDS: '2' } })
  const copy = world.browser.clone()
  await until(async () => {
    const [session] = copy.named('__Host-session')
    if (session !== undefined) copy.cookies.set('localhost;/;__Host-session', { ...session, expiresAt: Infinity })
    return (await accounts(copy)).status === 401
  })
  t.pass('the session ended while in use')
})

await test('a cookie that is doubled, tampered with or unknown is anonymous, and is not cleared', async (t) => {
  const world = await startWorld(t, { user: 'demo' })
  const value = world.browser.named('__Host-session')[0]?.value ?? ''
  // Of the last character of a signature, only some bits count.
  const [start, changed] = [value.slice(0, -2), value.at(-2) === 'A' ? 'B' : 'A']
  const bad = [
    `__Host-session=${value}; __Host-session=${value}`,
    `__Host-session=${start}${changed}${value.at(-1)}`,
    `__Host-session=${value.split('.')[0]}`,
    '__Host-session=',
    `__Host-session=${'x'.repeat(5000)}`,
    `x__Host-session=${value}`,
    `__Host-session=; __Host-session=${value}`,
    `session=${value}`,
  ]
  for (const cookie of bad) {
    const response = await fetch(world.server.url + ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
    t.equal(response.status, 401)
    t.same(response.headers.getSetCookie(), [])
    const state = await fetch(`${world.server.url}/auth/session`, { headers: { cookie } })
    t.match(await state.json(), { authenticated: false })
    t.same(state.headers.getSetCookie(), [])
  }
  const good = await fetch(world.server.url + ACCOUNTS, {
    headers: { cookie: `a=1;__Host-session=${value} ; b=2`, 'x-csrf': '1' },
  })
  t.equal(good.status, 200, 'a good cookie among others is found')
})

await test('SESSION_SECRETS rotate in two rolls without ending a session', async (t) => {
  const { browser, instance, visitor } = await startWorld(t, { redis: true })
  const other = 'the-next-secret-of-thirty-two-bytes-or-more'
  const roll = (secrets: string) => instance({ SESSION_SECRETS: secrets })
  await visitor(browser).logIn()
  const appended = await roll(`${SECRETS},${other}`)
  const moved = await roll(`${other},${SECRETS}`)
  const dropped = await roll(other)
  t.equal((await accounts(browser, appended.url)).status, 200)
  t.equal((await accounts(browser, moved.url)).status, 200)
  const unread = await accounts(browser, dropped.url)
  t.equal(unread.status, 401)
  t.same(unread.headers.getSetCookie(), [], 'a cookie that this instance cannot read is not cleared')
  t.equal((await accounts(browser)).status, 200, 'its session is not deleted')
})

await test('without Redis the API answers 503 at once and keeps the cookie, and it serves again when Redis is back', async (t) => {
  const { browser, redis, server } = await startWorld(t, { user: 'demo', redis: true })
  redis?.process.kill('SIGSTOP')
  await until(async () => (await accounts(browser)).status === 503)
  const response = await accounts(browser)
  t.match(await response.json(), { code: 'session_store_unavailable' })
  t.match(response.headers.get('content-type'), /^application\/problem\+json/)
  t.ok(Number(response.headers.get('retry-after')) >= 1)
  t.same(response.headers.getSetCookie(), [])
  t.equal((await browser.fetch('/auth/session')).status, 503)
  const anonymous = await fetch(`${server.url}/auth/session`)
  t.match(await anonymous.json(), { authenticated: false }, 'a request without a cookie needs no store')
  const logout = await browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })
  t.equal(logout.status, 503, 'a logout that failed does not answer 204')
  t.equal(browser.named('__Host-session').length, 1)
  const login = await browser.navigate(`${server.url}/auth/login`)
  t.equal(login.url.searchParams.get('auth_error'), 'try_later')
  redis?.process.kill('SIGCONT')
  await until(async () => (await accounts(browser)).status === 200)
  t.pass('the API serves again')
})
