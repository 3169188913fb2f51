import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { askRedis } from '../support/redis-topologies.ts'
import {
  loginWorld,
  logInThere,
  oldLoginCookie,
  sessionState,
  startLogin,
  storeClient,
  tokens,
  type LoginWorld,
} from '../support/token-endpoint.ts'
import { testServer } from '../support/world.ts'
import { until } from '../support/until.ts'

const CSRF = { 'x-csrf': '1' }
const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

/** Logs out from a page of the server. */
async function logOut(
  { browser, server }: Pick<LoginWorld, 'browser' | 'server'>,
  init: { headers?: Record<string, string>; body?: string } = {},
): Promise<Response> {
  browser.page = new URL(server.url)
  return browser.fetch('/auth/logout', { method: 'POST', ...init, headers: { ...CSRF, ...init.headers } })
}

await test('a page is told of its session, and never of a token', async (t) => {
  const world = await loginWorld(t, { settings: { SESSION_IDLE_SECONDS: '100' } })
  const { browser, server } = world
  const before = await sessionState(browser, server.url)
  t.same(Object.keys(before).sort(), ['authenticated', 'now'])
  t.equal(before.authenticated, false)
  await logInThere(world)
  const state = await sessionState(browser, server.url)
  t.same(Object.keys(state).sort(), ['authenticated', 'expires_at', 'idle_expires_at', 'now', 'scope'])
  const now = Number(state['now'])
  t.ok(Math.abs(now - Date.now() / 1000) < 5)
  t.ok(Number(state['expires_at']) - now > 3590 && Number(state['expires_at']) - now <= 3600)
  t.ok(Number(state['idle_expires_at']) - now > 95 && Number(state['idle_expires_at']) - now <= 100)
  const answer = await fetch(`${server.url}/auth/session`)
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.equal(answer.headers.get('referrer-policy'), 'no-referrer')
  t.match(answer.headers.get('content-type'), /^application\/json/)
})

await test('without a refresh token the session ends with its token, else at the absolute limit', async (t) => {
  const world = await loginWorld(t, { settings: { SESSION_MAX_SECONDS: '1000' } })
  const { browser, server, endpoint } = world
  const left = async (): Promise<number> => {
    await logInThere(world)
    const { now, expires_at: expiresAt, idle_expires_at: idle } = await sessionState(browser, server.url)
    t.ok(Number(idle) <= Number(expiresAt))
    return Math.round((Number(expiresAt) - Number(now)) / 10) * 10
  }
  t.equal(await left(), 1000)
  endpoint.behaviour = tokens({ expires_in: 500 })
  t.equal(await left(), 500)
  endpoint.behaviour = tokens({ expires_in: 500, refresh_token: 'r' })
  t.equal(await left(), 1000)
})

await test('asking does not prolong an idle session', async (t) => {
  const world = await loginWorld(t, { redis: true })
  const client = await storeClient(t, world)
  await logInThere(world)
  const [key = ''] = await client.keys('*:session:*')
  await client.pExpire(key, 60_000)
  const expiry = await client.pExpireTime(key)
  for (let count = 0; count < 3; count++) {
    t.equal((await sessionState(world.browser, world.server.url)).authenticated, true)
  }
  t.equal(await client.pExpireTime(key), expiry)
})

await test('two cookies of the name, or one that is not signed here, are nobody', async (t) => {
  const world = await loginWorld(t)
  const { browser, server } = world
  await logInThere(world)
  const [{ value } = { value: '' }] = browser.named('__Host-session')
  const ask = async (cookie: string): Promise<boolean> => {
    const answer = await fetch(`${server.url}/auth/session`, { headers: { cookie } })
    t.equal(answer.status, 200)
    t.same(answer.headers.getSetCookie(), [], 'nothing is cleared')
    return ((await answer.json()) as { authenticated: boolean }).authenticated
  }
  t.ok(await ask(`__Host-session=${value}`))
  t.notOk(await ask(`__Host-session=${value}; __Host-session=${value}`))
  t.notOk(await ask(`__Host-session=; __Host-session=${value}`))
  t.notOk(await ask(`__Host-session=${value.slice(0, -1)}`))
  t.notOk(await ask(`__Host-session=${value.split('.')[0]}`))
  t.notOk(await ask(`session=${value}`))
  t.ok(await ask(`__Host-session=${value}`), 'it is still there')
})

await test('logging out ends the session on every instance, forgets the login and revokes the token', async (t) => {
  const world = await loginWorld(t, { redis: true })
  const { browser, server, endpoint } = world
  const other = await testServer(t, world.settings)
  const client = await storeClient(t, world)
  endpoint.behaviour = tokens({ refresh_token: 'the-refresh-token' })
  const login = await startLogin(world)
  await login.finish()
  const before = browser.clone()
  t.equal((await sessionState(before, other.url)).authenticated, true, 'known to the other instance')

  const answer = await logOut(world)
  t.equal(answer.status, 204)
  t.equal(await answer.text(), '')
  for (const line of answer.headers.getSetCookie()) {
    t.match(line, /^__Host-[\w-]+=; Max-Age=0; Path=\/; HttpOnly; Secure; SameSite=(Strict|Lax)$/)
  }
  t.same(browser.named('__Host-'), [])
  t.same(
    (await client.keys('*')).filter((key) => !/:starts:|:tombstone$/.test(key)),
    [],
  )
  while ((await sessionState(before, other.url)).authenticated) {
    await new Promise((resolve) => void setTimeout(resolve, 5))
  }
  t.equal((await sessionState(before, server.url)).authenticated, false)
  while (endpoint.revoked.length < 2) await new Promise((resolve) => void setTimeout(resolve, 5))
  t.same(endpoint.revoked.toSorted(), ['the-access-token', 'the-refresh-token'])
  t.equal((await login.finish()).url.search, '?auth_error=state_mismatch', 'its callback is over, too')

  t.equal((await logOut(world)).status, 204, 'once more')
  t.equal(
    (await logOut({ ...world, browser: before })).status,
    204,
    'with a cookie of a session that is gone',
  )
})

await test('logging out leaves nothing of this browser behind but logins that are under way', async (t) => {
  const world = await loginWorld(t, { redis: true })
  const { browser, server } = world
  await logInThere(world)
  const overwritten = browser.clone()
  const pending = await startLogin(world)
  await (await startLogin(world)).finish({ error: 'access_denied' })
  // A session whose cookie is lost, though its login is known: two that finished at the same moment leave one.
  for (const [key, { name }] of browser.cookies) if (name === '__Host-session') browser.cookies.delete(key)
  t.equal((await logOut(world)).status, 204)
  t.notOk((await sessionState(overwritten, server.url)).authenticated)
  t.same(
    browser.named('__Host-').map(({ name }) => name),
    [`__Host-login-${pending.state.slice(0, 8)}`],
  )
  t.equal((await pending.finish()).url.href, `${server.url}/`)
})

await test('logging out takes any body', async (t) => {
  const world = await loginWorld(t)
  for (const [type, body] of [
    ['application/json', ''],
    ['application/json', '{"broken'],
    ['text/plain', 'x'],
    ['application/x-www-form-urlencoded', 'a=b'],
    ['multipart/form-data; boundary=x', '--x--'],
  ] as const) {
    await logInThere(world)
    const answer = await logOut(world, { headers: { 'content-type': type }, body })
    t.equal(answer.status, 204, type)
    t.notOk((await sessionState(world.browser, world.server.url)).authenticated)
  }
})

await test('only a page of the frontend logs out', async (t) => {
  const world = await loginWorld(t)
  const { browser, server } = world
  await logInThere(world)
  browser.page = new URL(server.url)
  const attempts: Record<string, string>[] = [
    { 'x-csrf': '' },
    { 'x-csrf': '0' },
    { ...CSRF, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
    { ...CSRF, origin: 'null', 'sec-fetch-site': 'cross-site' },
  ]
  for (const headers of attempts) {
    const answer = await browser.fetch('/auth/logout', { method: 'POST', headers })
    t.equal(answer.status, 403, JSON.stringify(headers))
    t.match(await answer.json(), { code: 'csrf_rejected' })
  }
  t.ok((await sessionState(browser, server.url)).authenticated)
})

await test('a browser that has lost its session cookie logs out by the cookie of its login, token and all', async (t) => {
  for (const redis of [false, true]) {
    const world = await loginWorld(t, { redis })
    const { browser, server, endpoint } = world
    await logInThere(world)
    const tab = browser.clone()
    const [login] = browser.named('__Host-login-')
    const answer = await fetch(`${server.url}/auth/logout`, {
      method: 'POST',
      headers: { ...CSRF, cookie: `${login?.name}=${login?.value}` },
    })
    t.equal(answer.status, 204)
    t.notOk((await sessionState(tab, server.url)).authenticated)
    while (endpoint.revoked.length === 0) await new Promise((resolve) => void setTimeout(resolve, 5))
    t.same(endpoint.revoked, ['the-access-token'])
  }
})

await test('logging out waits for no revocation', async (t) => {
  const settings = { REVOCATION_URL: 'http://127.0.0.1:9/revoke' }
  const world = await loginWorld(t, { settings })
  await logInThere(world)
  t.equal((await logOut(world)).status, 204)
  const { log } = world.server
  while (!log.some(({ msg }) => msg.includes('could not be revoked'))) {
    await new Promise((resolve) => void setTimeout(resolve, 5))
  }
  t.notMatch(JSON.stringify(log), /the-access-token/)
})

await test('while the store is away nobody is told that he is logged out', async (t) => {
  const world = await loginWorld(t, { redis: true })
  const { browser, server, redis } = world
  await logInThere(world)
  const cookies = browser.named('__Host-')
  await redis?.close()
  const answers = [await logOut(world), await browser.fetch('/auth/session')]
  for (const answer of answers) {
    t.equal(answer.status, 503)
    t.ok(Number(answer.headers.get('retry-after')) >= 1)
    t.match(answer.headers.get('content-type'), /^application\/problem\+json/)
    t.match(await answer.json(), { code: 'session_store_unavailable', status: 503 })
    t.same(answer.headers.getSetCookie(), [])
  }
  t.same(browser.named('__Host-'), cookies)
  const nobody = await fetch(`${server.url}/auth/session`)
  t.same(
    Object.keys((await nobody.json()) as object).sort(),
    ['authenticated', 'now'],
    'nobody needs no store',
  )
})

await test('strangers who log out in vain keep no server from hearing of a logout elsewhere', async (t) => {
  const world = await loginWorld(t, { redis: true, settings: { AUTH_STARTS_PER_MINUTE: '0' } })
  const { browser, redis, settings } = world
  if (redis === undefined) throw new Error('no Redis')
  // Of so many keys Redis tells who read them what becomes of them; a million as it comes.
  await askRedis(redis, ['CONFIG', 'SET', 'tracking-table-max-keys', '20'])
  const other = await testServer(t, settings)
  await logInThere(world)
  const left = browser.clone()
  t.equal((await sessionState(left, other.url)).authenticated, true, 'held near')

  for (let stranger = 0; stranger < 40; stranger++) {
    const cookies = [`__Host-session=${random(32)}.${random(32)}`, oldLoginCookie()]
    const headers = { ...CSRF, cookie: cookies.join('; ') }
    const answer = await fetch(`${other.url}/auth/logout`, { method: 'POST', headers })
    t.equal(answer.status, 204)
    await fetch(`${other.url}/auth/callback?state=x&code=x`, { headers, redirect: 'manual' })
  }
  t.match(await askRedis(redis, ['INFO', 'stats']), /tracking_total_keys:1\r/, 'that of the session')
  t.equal((await logOut(world)).status, 204)
  await until(async () => !(await sessionState(left, other.url)).authenticated)
})
