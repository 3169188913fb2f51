import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import type { JarBrowser } from '../support/browser/jar-browser.ts'
import { isLoggedIn, json, unsignedLoginCookie, scripted, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import { sendTo } from '../support/user.ts'
import { startWorld, type World } from '../support/world.ts'

const MAX_COMMANDS = 10
const CSRF = { 'x-csrf': '1' }
const NAVIGATION = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
const random = (bytes: number): string => randomBytes(bytes).toString('base64url')
const forgedSession = (): string => `__Host-session=${random(32)}.x`
const cookies = (count: number, make: () => string): string => Array.from({ length: count }, make).join('; ')

/** Returns a counter of the commands that Redis has executed, without those that keep connections alive. */
async function commandCounter(world: World<'none', TokenEndpoint>): Promise<() => Promise<number>> {
  const client = await world.storeClient()
  return async () => {
    const stats = await client.info('commandstats')
    const counted = [...stats.matchAll(/^cmdstat_(\S+):calls=(\d+)/gm)]
    const relevant = counted.filter(([, name = '']) => !/^(ping|info|client\|setinfo|hello)$/.test(name))
    return relevant.reduce((sum, [, , calls]) => sum + Number(calls), 0)
  }
}

/** Starts ten logins in a browser, and returns their cookies and the newest state. */
async function tenStarts(world: World<'none', TokenEndpoint>): Promise<{ started: string; state: string }> {
  let state = ''
  for (let count = 0; count < 10; count++) ({ state } = await world.startLogin())
  return { started: loginCookies(world), state }
}

/** Has the provider refuse ten logins of a browser, and returns their cookies. */
async function tenFailures(world: World<'none', TokenEndpoint>): Promise<string> {
  const { provider } = world
  const { behaviour } = provider
  provider.behaviour = json({ error: 'invalid_grant' }, 400)
  for (let count = 0; count < 10; count++) await (await world.startLogin()).finish()
  provider.behaviour = behaviour
  return loginCookies(world)
}

/** Two logins at the same time in one browser, of which neither replaces the other, and the browser after each. */
async function twoSessions(world: World<'none', TokenEndpoint>): Promise<JarBrowser[]> {
  const logins = [await world.startLogin(), await world.startLogin()]
  const after: JarBrowser[] = []
  for (const login of logins) {
    await login.finish()
    after.push(world.browser.clone())
  }
  return after
}

function loginCookies({ browser }: World<'none', TokenEndpoint>): string {
  const named = browser.named('__Host-login-')
  return named.map(({ name, value }) => `${name}=${value}`).join('; ')
}

await test('An unauthenticated request costs at most ten Redis commands, and login cookies without a valid MAC cost none', async (t) => {
  const world = await startWorld(t, {
    provider: scripted,
    redis: true,
    settings: { AUTH_STARTS_PER_MINUTE: '1000', TRUST_PROXY: '1' },
  })
  const { server, browser } = world
  const failed = await tenFailures(world)
  const { started, state } = await tenStarts(world)
  await world.logIn()
  const [session] = browser.named('__Host-session')
  await fetch(`${server.url}/auth/logout`, {
    method: 'POST',
    headers: { ...CSRF, cookie: `__Host-session=${session?.value}` },
  })
  const madeUp: [what: string, cookie: string, isFree: boolean][] = [
    ['an unrelated cookie', 'a=b', true],
    ['session cookies with forged signatures', cookies(100, () => `__Host-session=${random(32)}.${random(32)}`), false],
    ['login cookies with forged MACs', cookies(100, () => `${unsignedLoginCookie()}.${random(16)}`), true],
    ['login cookies without a MAC', cookies(100, unsignedLoginCookie), true],
    ['logins that were started and never finished', started, false],
    ['logins that failed', failed, false],
    ['the same started logins, ten times each', cookies(10, () => started), false],
    ['a session that has ended', `__Host-session=${session?.value}`, false],
    ['an ended session, twice', cookies(2, () => `__Host-session=${session?.value}`), false],
  ]
  const commands = await commandCounter(world)
  const routes: [method: string, path: string, headers: Record<string, string>][] = [
    ['POST', '/auth/logout', CSRF],
    ['GET', '/auth/session', {}],
    ['GET', '/auth/callback?code=x&state=made-up', NAVIGATION],
    ['GET', `/auth/callback?error=x&state=${state}x`, NAVIGATION],
    ['GET', '/api/account/v1/nickname', CSRF],
    ['GET', '/auth/login', NAVIGATION],
    ['HEAD', '/auth/signup', NAVIGATION],
  ]
  for (const [what, cookie, isFree] of madeUp) {
    for (const [method, path, headers] of routes) {
      const spend = async (): Promise<number> => {
        const before = await commands()
        const forwarded = { 'x-forwarded-for': '2001:db8::1' }
        const response = await fetch(server.url + path, {
          method,
          redirect: 'manual',
          headers: { ...headers, ...forwarded, cookie },
        })
        await response.arrayBuffer()
        return (await commands()) - before
      }
      const limit = isFree && path !== '/auth/login' ? 0 : MAX_COMMANDS
      let spent = await spend()
      // A probe of the master, once a second, may have come in between, on a slow machine several times in a row.
      for (let tries = 0; spent > limit && tries < 10; tries++) spent = await spend()
      t.ok(spent <= limit, `${method} ${path} with ${what}: ${spent} commands`)
    }
  }
})

await test('POST /auth/logout: 429 when an address sends more unverifiable session cookies than AUTH_STARTS_PER_MINUTE', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true, settings: { AUTH_STARTS_PER_MINUTE: '3' } })
  const { server } = world
  const client = await world.storeClient()
  const logOut = (cookie: string): Promise<Response> =>
    fetch(`${server.url}/auth/logout`, { method: 'POST', headers: { ...CSRF, cookie } })
  for (const cookie of [forgedSession(), forgedSession(), forgedSession()]) t.equal((await logOut(cookie)).status, 204)
  const refused = await logOut(forgedSession())
  t.equal(refused.status, 429)
  t.equal(refused.headers.get('retry-after'), '60')
  t.match(await refused.json(), { code: 'rate_limited' })
  t.equal((await logOut(unsignedLoginCookie())).status, 204, 'a logout without such a cookie is not counted')
  t.same(await client.keys('*:tombstone'), [], 'unknown sessions leave no tombstones')
})

await test('POST /auth/logout: a browser with a session is logged out wholly when AUTH_STARTS_PER_MINUTE is used up', async (t) => {
  for (const [query, status] of [
    ['', 204],
    ['?everywhere=true', 409],
  ] as const) {
    const world = await startWorld(t, { provider: scripted, redis: true, settings: { AUTH_STARTS_PER_MINUTE: '2' } })
    const { browser, server } = world
    const tabs = await twoSessions(world)
    browser.page = new URL(server.url)
    t.equal((await browser.fetch(`/auth/logout${query}`, { method: 'POST', headers: CSRF })).status, status)
    for (const tab of tabs) t.notOk(await isLoggedIn(tab, server.url))
  }
})

await test('POST /auth/logout: a 429 ends the sessions of the logins of this browser, and looks up no others', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true, settings: { AUTH_STARTS_PER_MINUTE: '1' } })
  const { server, browser } = world
  await world.logIn()
  const headers = { ...CSRF, cookie: `${forgedSession()}; ${loginCookies(world)}` }
  const response = await fetch(`${server.url}/auth/logout`, { method: 'POST', headers })
  t.equal(response.status, 429)
  t.notMatch(response.headers.getSetCookie().join(), '__Host-session', 'the cookie that was not looked up stays')
  t.notOk(await isLoggedIn(browser, server.url))

  const other = await startWorld(t, { provider: scripted, redis: true, settings: { AUTH_STARTS_PER_MINUTE: '1' } })
  await other.logIn()
  const [session] = other.browser.named('__Host-session')
  const cookie = `__Host-session=${session?.value.split('.')[0]}.x`
  const refused = await fetch(`${other.server.url}/auth/logout`, { method: 'POST', headers: { ...CSRF, cookie } })
  t.equal(refused.status, 429)
  t.same(refused.headers.getSetCookie(), [], 'it can be tried again')
  t.ok(await isLoggedIn(other.browser, other.server.url))
})

await test('GET /auth/callback: state_mismatch with a login cookie without a MAC, and nothing is exchanged', async (t) => {
  const { browser, provider, startLogin } = await startWorld(t, { provider: scripted, redis: true })
  const login = await startLogin()
  for (const [key, cookie] of browser.cookies) {
    const value = cookie.value.split('.').slice(0, 2).join('.')
    if (cookie.name.startsWith('__Host-login-')) browser.cookies.set(key, { ...cookie, value })
  }
  t.match((await login.finish()).url.href, /auth_error=state_mismatch/)
  t.equal(provider.forms.length, 0)
})

await test('GET /auth/callback: state_mismatch unless the name, secret, start time and MAC of the login cookie fit byte for byte', async (t) => {
  const { server, provider, browser, startLogin } = await startWorld(t, { provider: scripted })
  const { state } = await startLogin()
  const [{ name, value } = { name: '', value: '' }] = browser.named('__Host-login-')
  const [secret = '', start = '', mac = ''] = value.split('.')
  const forgeries = [
    `${name}=${secret}.${start}.${random(16)}`,
    `${name}=${secret}.${start}.${mac.slice(0, -2)}`,
    `${name}=${secret}.${start}.`,
    `${name}=${secret}.0.${mac}`,
    `__Host-login-${random(6)}=${value}`,
    `\u00a0${name}=${value}`,
    `\u0085${name}=${value}`,
    `${name}\u00a0=${value}`,
    `${name}=\u00a0${value}`,
    `${name}=${value}\u00a0`,
    `x${name}=${value}`,
    `${name.toLowerCase()}=${value}`,
    `a="; ${name}`,
  ]
  const callback = async (cookie: string): Promise<string> => {
    const headers = { ...NAVIGATION, cookie }
    return (
      (await sendTo(server.port, 'GET', `/auth/callback?code=x&state=${state}`, { headers })).headers.location ?? ''
    )
  }
  for (const forgery of forgeries) t.match(await callback(forgery), /state_mismatch/, JSON.stringify(forgery))
  t.equal(provider.forms.length, 0)
  t.notMatch(await callback(`a=b;\t ${name}=${value} \t; c`), /state_mismatch/, 'blanks around a cookie are ignored')
  t.equal(provider.forms.length, 1)
})

await test('GET /auth/login: the record of a login does not grow with the number of earlier logins', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true, settings: { AUTH_STARTS_PER_MINUTE: '0' } })
  const { browser, server } = world
  const client = await world.storeClient()
  const earlier = []
  for (let count = 0; count < 20; count++) {
    await world.startLogin()
    await world.logIn()
    earlier.push(browser.clone())
  }
  const sizes = await Promise.all((await client.keys('*:login:*')).map((key) => client.strLen(key)))
  t.ok(Math.max(...sizes) < 500, `${Math.max(...sizes)} bytes`)
  t.ok(await isLoggedIn(browser, server.url))
  for (const old of earlier.slice(0, -1)) t.notOk(await isLoggedIn(old, server.url))
})

await test('GET /auth/login: a start counts once for each KiB of its record', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true })
  const client = await world.storeClient()
  const counter = 'bff:1:starts:127.0.0.1'
  for (const path of ['/', `/${'a'.repeat(500)}`, `/${'"'.repeat(1000)}`, `/${'\\'.repeat(2047)}`]) {
    await client.flushAll()
    await world.startLogin(`/auth/login?return_to=${encodeURIComponent(path)}`)
    const [key = ''] = await client.keys('*:login:*')
    const bytes = key.length + (await client.strLen(key))
    const counted = Number(await client.get(counter))
    t.ok(counted >= bytes / 1024 && counted <= bytes / 1024 + 1.2, `${bytes} bytes count ${counted} times`)
  }
})

await test('GET /auth/login: a /56 may start 4 times and a /48 16 times as many logins as a /64', async (t) => {
  const settings = { AUTH_STARTS_PER_MINUTE: '2', TRUST_PROXY: '1' }
  const { server, provider } = await startWorld(t, { provider: scripted, redis: true, settings })
  const starts = async (address: string): Promise<boolean> => {
    const headers = { 'x-forwarded-for': address, ...NAVIGATION }
    const response = await fetch(`${server.url}/auth/login`, { redirect: 'manual', headers })
    return (response.headers.get('location') ?? '').startsWith(provider.url)
  }
  let startsOfSubnet = 0
  for (let net = 0; net < 8; net++)
    for (let count = 0; count < 3; count++) startsOfSubnet += Number(await starts(`2001:db8:1:${net}::1`))
  t.equal(startsOfSubnet, 8, 'a /56')
  let startsOfSite = startsOfSubnet
  for (let net = 1; net < 40; net++) startsOfSite += Number(await starts(`2001:db8:1:${(net * 256).toString(16)}::1`))
  t.equal(startsOfSite, 32, 'a /48')
  t.ok(await starts('2001:db8:2::1'), 'another /48')
})
