import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import {
  unsignedLoginCookie,
  sessionState,
  startLogin,
  tokens,
  scripted,
  type TokenEndpoint,
} from '../support/login/token-endpoint.ts'
import { testServer } from '../support/server/test-server.ts'
import { lossyStore } from '../support/sessions/lossy-store.ts'
import { failureCount } from '../support/telemetry/lines.ts'
import { until } from '../support/time/until.ts'
import { startWorld, type World } from '../support/world.ts'

const CSRF = { 'x-csrf': '1' }
const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

/** Logs out from a page of the server. */
async function logOut(
  { browser, server }: Pick<World<'none', TokenEndpoint>, 'browser' | 'server'>,
  init: { headers?: Record<string, string>; body?: string } = {},
): Promise<Response> {
  browser.page = new URL(server.url)
  return browser.fetch('/auth/logout', { method: 'POST', ...init, headers: { ...CSRF, ...init.headers } })
}

await test('GET /auth/session: 200 with the state of the session and without a token', async (t) => {
  const world = await startWorld(t, { provider: scripted, settings: { SESSION_IDLE_SECONDS: '100' } })
  const { browser, server } = world
  const before = await sessionState(browser, server.url)
  t.same(Object.keys(before).sort(), ['authenticated', 'now'])
  t.equal(before.authenticated, false)
  await world.logIn()
  const state = await sessionState(browser, server.url)
  t.same(Object.keys(state).sort(), ['authenticated', 'expires_at', 'idle_expires_at', 'now', 'scope', 'session'])
  const now = Number(state['now'])
  t.ok(Math.abs(now - Date.now() / 1000) < 5)
  t.ok(Number(state['expires_at']) - now > 3590 && Number(state['expires_at']) - now <= 3600)
  t.ok(Number(state['idle_expires_at']) - now >= 89 && Number(state['idle_expires_at']) - now <= 100)
  const response = await fetch(`${server.url}/auth/session`)
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.equal(response.headers.get('referrer-policy'), 'no-referrer')
  t.match(response.headers.get('content-type'), /^application\/json/)
})

await test('POST /auth/logout: 204 ends the session on every instance, deletes the login and revokes both tokens', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true })
  const { browser, server, provider } = world
  const other = await world.instance()
  const client = await world.storeClient()
  provider.behaviour = tokens({ refresh_token: 'the-refresh-token' })
  const login = await world.startLogin()
  await login.finish()
  const before = browser.clone()
  t.equal((await sessionState(before, other.url)).authenticated, true, 'the other instance caches the session')

  const response = await logOut(world)
  t.equal(response.status, 204)
  t.equal(await response.text(), '')
  for (const line of response.headers.getSetCookie()) {
    t.match(line, /^__Host-[\w-]+=; Max-Age=0; Path=\/; HttpOnly; Secure; SameSite=(Strict|Lax)$/)
  }
  t.same(browser.named('__Host-'), [])
  await until(async () => !(await sessionState(before, other.url)).authenticated)
  t.equal((await sessionState(before, server.url)).authenticated, false)
  await until(() => provider.revoked.length >= 2)
  t.same(provider.revoked.toSorted(), ['the-access-token', 'the-refresh-token'])
  // What is left of the session is removed once its tokens are revoked.
  const others = /:starts:|:tombstone$|:refreshes$/
  await until(async () => (await client.keys('*')).every((key) => others.test(key)))
  t.equal((await login.finish()).url.search, '?auth_error=state_mismatch', 'the login is deleted too')

  t.equal((await logOut(world)).status, 204, 'a repeated logout')
  t.equal((await logOut({ ...world, browser: before })).status, 204, 'with a cookie of a session that is gone')
})

await test('POST /auth/logout: 204 deletes all sessions and logins of the browser except pending logins', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true })
  const { browser, server } = world
  await world.logIn()
  const overwritten = browser.clone()
  const pending = await world.startLogin()
  await (await world.startLogin()).finish({ error: 'access_denied' })
  // Two logins that finish at the same time leave one session cookie, so the other session is known by its login only.
  for (const [key, { name }] of browser.cookies) if (name === '__Host-session') browser.cookies.delete(key)
  t.equal((await logOut(world)).status, 204)
  t.notOk((await sessionState(overwritten, server.url)).authenticated)
  t.same(
    browser.named('__Host-').map(({ name }) => name),
    [`__Host-login-${pending.state.slice(0, 8)}`],
  )
  t.equal((await pending.finish()).url.href, `${server.url}/`)
})

await test('POST /auth/session and /auth/logout: 204 whatever the body and its type are', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  for (const [type, body] of [
    ['application/json', ''],
    ['application/json', '{"broken'],
    ['text/plain', 'x'],
    ['application/x-www-form-urlencoded', 'a=b'],
    ['multipart/form-data; boundary=x', '--x--'],
    ['json', '{}'],
    ['', 'x'],
    ['text/plain;;', ''],
  ] as const) {
    await world.logIn()
    world.browser.page = new URL(world.server.url)
    const headers = { ...CSRF, 'content-type': type }
    t.equal((await world.browser.fetch('/auth/session', { method: 'POST', headers, body })).status, 204, type)
    const response = await logOut(world, { headers: { 'content-type': type }, body })
    t.equal(response.status, 204, type)
    t.notOk((await sessionState(world.browser, world.server.url)).authenticated)
  }
})

await test('POST /auth/logout: 204 with the login cookie alone ends the session and revokes its token', async (t) => {
  for (const redis of [false, true]) {
    const { browser, server, provider, logIn } = await startWorld(t, { provider: scripted, redis })
    await logIn()
    const tab = browser.clone()
    const [login] = browser.named('__Host-login-')
    const response = await fetch(`${server.url}/auth/logout`, {
      method: 'POST',
      headers: { ...CSRF, cookie: `${login?.name}=${login?.value}` },
    })
    t.equal(response.status, 204)
    t.notOk((await sessionState(tab, server.url)).authenticated)
    await until(() => provider.revoked.length > 0)
    t.same(provider.revoked, ['the-access-token'])
  }
})

await test('POST /auth/logout: 204 once the session has ended, although the record of its login cannot be removed', async (t) => {
  const { settings, visitor } = await startWorld(t, { provider: scripted })
  const { PUBLIC_URL: _, ...shared } = settings
  const lossy = lossyStore(new MemoryStore())
  const server = await testServer(t, shared, lossy.store)
  const { browser } = visitor()
  await (await startLogin({ browser, server })).finish()
  // Without the cookie of the login only the session leads to its record.
  for (const [key, { name }] of browser.cookies) if (name.startsWith('__Host-login-')) browser.cookies.delete(key)
  lossy.lose('remove', 'unsent')
  t.equal((await logOut({ browser, server })).status, 204)
  t.notOk((await sessionState(browser, server.url)).authenticated)
  t.equal(failureCount(server.log, 'a finished login was not removed'), 1)
})

await test('POST /auth/logout: what a failure has left is found again, also by the cookie of its login alone', async (t) => {
  const { settings, visitor } = await startWorld(t, { provider: scripted })
  const { PUBLIC_URL: _, ...shared } = settings
  const lossy = lossyStore(new MemoryStore())
  const server = await testServer(t, shared, lossy.store)
  for (const replaces of [false, true]) {
    const { browser } = visitor()
    const [first, second] = [await startLogin({ browser, server }), await startLogin({ browser, server })]
    await first.finish()
    const before = browser.clone()
    // As where the browser has given up before the response of the callback came.
    for (const [key, { name }] of browser.cookies)
      if (!replaces && name === '__Host-session') browser.cookies.delete(key)
    lossy.lose('bury', 'unsent')
    t.equal((await logOut({ browser, server })).status, 503)
    t.ok((await sessionState(before, server.url)).authenticated)
    if (replaces) await second.finish()
    else t.equal((await logOut({ browser, server })).status, 204)
    t.notOk((await sessionState(before, server.url)).authenticated, replaces ? 'a new login' : 'another logout')
  }
})

await test('Logouts with made-up cookies do not evict sessions from the tracking table of Redis', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true, settings: { AUTH_STARTS_PER_MINUTE: '0' } })
  const { browser, redis, settings } = world
  if (redis === undefined) throw new Error('no Redis')
  // Redis notifies readers about this many keys only; by default a million.
  await askRedis(redis, ['CONFIG', 'SET', 'tracking-table-max-keys', '20'])
  const other = await testServer(t, settings)
  await world.logIn()
  const before = browser.clone()
  t.equal((await sessionState(before, other.url)).authenticated, true, 'the other instance caches the session')

  for (let count = 0; count < 40; count++) {
    const cookies = [`__Host-session=${random(32)}.${random(32)}`, unsignedLoginCookie()]
    const headers = { ...CSRF, cookie: cookies.join('; ') }
    const response = await fetch(`${other.url}/auth/logout`, { method: 'POST', headers })
    t.equal(response.status, 204)
    await fetch(`${other.url}/auth/callback?state=x&code=x`, { headers, redirect: 'manual' })
  }
  t.match(
    await askRedis(redis, ['INFO', 'stats']),
    /tracking_total_keys:[1-5]\r/,
    'the session, and with Redis 7 the two keys of the probe of each instance',
  )
  t.equal((await logOut(world)).status, 204)
  await until(async () => !(await sessionState(before, other.url)).authenticated)
})
