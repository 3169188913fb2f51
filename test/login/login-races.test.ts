import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { INDEX } from '../../src/store/index-commands.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { operate, IDENTITY, IDENTIFIED } from '../support/login/identity.ts'
import { held, json, isLoggedIn, startLogin, tokens, scripted } from '../support/login/token-endpoint.ts'
import { until, within } from '../support/time/until.ts'
import { testServer } from '../support/server/test-server.ts'
import { failureCount } from '../support/telemetry/lines.ts'
import { startWorld } from '../support/world.ts'

const LOGIN = '__Host-login-'
/** More than the clocks of a login and of the store may disagree. */
const CLEARLY_LATER_MS = 50

/** Fails one change of a record, after `changesLeft` others. A login makes two: to running, and to its outcome. */
class ForgetfulStore extends MemoryStore {
  changesLeft = Infinity

  override async replace(...args: Parameters<MemoryStore['replace']>): Promise<boolean> {
    if (this.changesLeft-- === 0) throw new StoreUnavailable(new Error('away'))
    return super.replace(...args)
  }
}

/** Makes every change of a record wait. */
class HeldStore extends MemoryStore {
  readonly asked = Promise.withResolvers<void>()
  readonly released = Promise.withResolvers<void>()

  override async replace(...args: Parameters<MemoryStore['replace']>): Promise<boolean> {
    this.asked.resolve()
    await this.released.promise
    return super.replace(...args)
  }
}

await test('GET /auth/callback: two tabs log in, and a repeated callback redirects without a second exchange', async (t) => {
  const { browser, provider, server, startLogin } = await startWorld(t, { provider: scripted })
  const first = await startLogin('/auth/login?return_to=/first')
  const second = await startLogin('/auth/signup?return_to=/second')
  t.equal((await second.finish()).url.pathname, '/second')
  t.equal((await first.finish()).url.pathname, '/first')
  const [session] = browser.named('__Host-session')
  for (const [tab, path] of [
    [first, '/first'],
    [second, '/second'],
    [first, '/first'],
  ] as const) {
    const again = await tab.finish()
    t.equal(again.url.href, server.url + path, 'the redirect carries no error')
    t.same(again.hops[0]?.headers.getSetCookie(), [], 'a repeated callback sets no cookie')
  }
  t.equal(provider.forms.length, 2, 'a repeated callback exchanges nothing')
  t.same(browser.named('__Host-session'), [session])
  t.ok(await isLoggedIn(browser, server.url))
  // The state alone identifies the login, so other parameters do not matter.
  t.equal((await first.finish({ error: 'access_denied' })).url.pathname, '/first')
})

/** Starts a login, and reloads its callback, on another instance, while the code is being exchanged. */
async function reloadDuringExchange(t: Test, path: string) {
  const world = await startWorld(t, { provider: scripted, redis: true })
  const { browser, provider, server } = world
  const other = await world.instance()
  const client = await world.storeClient()
  const { state, authorize } = await world.startLogin(path)
  const waiting = held()
  provider.behaviour = waiting.behaviour
  // On a reload the browser hangs up on the first callback and never sees its cookies.
  const hungUp = browser.clone()
  const query = `code=x&state=${state}`
  const first = hungUp.navigate(`${server.url}/auth/callback?${query}`, { from: authorize })
  await waiting.asked
  const reads = async (): Promise<number> =>
    Number(/cmdstat_get:calls=(\d+)/.exec(await client.info('commandstats'))?.[1])
  const before = await reads()
  const second = browser.navigate(`${other.url}/auth/callback?${query}`, { from: authorize })
  // The second callback reads the state of the login twice before it starts polling.
  await until(async () => (await reads()) >= before + 4, 'the second callback polls the login')
  waiting.release()
  return { world, hungUp, arrivals: await Promise.all([first, second]) }
}

await test('GET /auth/callback: a repeated callback waits for the outcome of the one still running', async (t) => {
  const { world, hungUp, arrivals } = await reloadDuringExchange(t, '/auth/login?return_to=/chart')
  const { browser, provider, server } = world
  for (const arrival of arrivals) t.equal(arrival.url.href, `${server.url}/chart`)
  t.equal(provider.forms.length, 1)
  t.ok(await isLoggedIn(browser, server.url), 'the reloaded tab is logged in')
  t.ok(hungUp.named('__Host-session')[0]?.value, 'both callbacks set the same session')
  t.equal(browser.named('__Host-session')[0]?.value, hungUp.named('__Host-session')[0]?.value)
})

await test('GET /auth/callback: a repeated callback that waits for a sign-up deletes its partner link, as the first one does', async (t) => {
  const link = 'sidc=0f8fad5b-d9cb-469f-a165-70867728950e&utm_campaign=a&utm_medium=affiliate&utm_source=b'
  const { world, hungUp } = await reloadDuringExchange(t, `/auth/signup?${link}`)
  t.same(hungUp.named('__Host-attribution'), [])
  t.same(world.browser.named('__Host-attribution'), [])
})

await test('GET /auth/callback: a repeated callback that learns its outcome late leaves the session of a newer one in place', async (t) => {
  const { browser, provider, server, startLogin } = await startWorld(t, { provider: scripted })
  const waiting = held()
  provider.behaviour = waiting.behaviour
  const older = await startLogin('/auth/login?return_to=/older')
  const first = older.finish()
  await waiting.asked
  const repeated = older.finish()
  // Its pauses grow: from here on it looks again only after 1.6 seconds.
  await delay(1700)
  waiting.release()
  await first
  await (await startLogin('/auth/login?return_to=/newer')).finish()
  const newer = browser.named('__Host-session')
  t.equal((await repeated).url.href, `${server.url}/older`)
  t.same(browser.named('__Host-session'), newer)
  t.ok(await isLoggedIn(browser, server.url))
})

await test('GET /auth/callback: try_later when the outcome cannot be stored, and the session before it lives on', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  const { PUBLIC_URL: _, ...settings } = world.settings
  const store = new ForgetfulStore()
  const server = await testServer(t, settings, store)
  const { browser, provider } = world
  await (await startLogin({ browser, server })).finish()
  const session = browser.named('__Host-session')
  provider.behaviour = tokens({ access_token: 'that-nobody-gets' })
  const login = await startLogin({ browser, server })
  store.changesLeft = 1
  t.equal((await login.finish()).url.searchParams.get('auth_error'), 'try_later')
  t.same(browser.named('__Host-session'), session)
  t.ok(await isLoggedIn(browser, server.url))
  await until(() => provider.revoked.includes('that-nobody-gets'), 'its token is revoked')
})

await test('POST /auth/logout: 204 ends the sessions of all logins that tabs started at the same moment', async (t) => {
  const { browser, server, storeClient, startLogin } = await startWorld(t, { provider: scripted, redis: true })
  const client = await storeClient()
  const tabs = await Promise.all(Array.from({ length: 12 }, () => startLogin()))
  for (const tab of tabs) await tab.finish()
  t.equal(browser.named(LOGIN).length, 12)
  browser.page = new URL(server.url)
  const response = await browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })
  t.equal(response.status, 204)
  // What is left of a session stays until its tokens are revoked, and is none.
  t.same(
    (await client.keys('*:session:*')).filter((key) => !/:(tombstone|left)$/.test(key)),
    [],
  )
  t.same(browser.named('__Host-'), [])
})

await test('GET /auth/callback: a repeated callback of a failed login reports the same failure', async (t) => {
  const { provider, startLogin, browser } = await startWorld(t, { provider: scripted })
  provider.behaviour = json({ error: 'invalid_grant' }, 400)
  const { finish } = await startLogin('/auth/signup?return_to=/chart')
  const failed = '?auth_error=invalid_grant&flow=signup&return_to=%2Fchart'
  t.equal((await finish()).url.search, failed)
  provider.behaviour = tokens()
  t.equal((await finish()).url.search, failed)
  t.equal(provider.forms.length, 1)
  t.same(browser.named('__Host-session'), [])
})

await test('GET /auth/callback: concurrent callbacks of one login on two instances exchange its code once', async (t) => {
  const { browser, provider, server, instance, startLogin } = await startWorld(t, { provider: scripted, redis: true })
  const other = await instance()
  const { state, authorize } = await startLogin()
  const arrivals = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const { url } = index % 2 === 0 ? server : other
      return browser.navigate(`${url}/auth/callback?code=x&state=${state}`, { from: authorize })
    }),
  )
  for (const { url } of arrivals) t.equal(url.href, `${server.url}/`)
  t.equal(provider.forms.length, 1)
  t.ok(await isLoggedIn(browser, server.url))
})

await test('GET /auth/callback: ten concurrent logins over two instances finish in any order', async (t) => {
  const { browser, provider, server, instance } = await startWorld(t, { provider: scripted, redis: true })
  const other = await instance()
  const logins = await Promise.all(
    Array.from({ length: 10 }, async (_, index) => {
      const start = index % 2 === 0 ? server : other
      const login = await startLogin({ browser, server: start }, `/auth/login?return_to=/${index}`)
      return { ...login, index }
    }),
  )
  t.equal(browser.named(LOGIN).length, 10)
  // Four finish one after another in reverse order, the rest at once; each on the instance that did not start it.
  const finish = async ({ state, authorize, index }: (typeof logins)[number]): Promise<void> => {
    const { url } = index % 2 === 0 ? other : server
    const arrival = await browser.navigate(`${url}/auth/callback?code=${index}&state=${state}`, {
      from: authorize,
    })
    t.equal(arrival.url.href, `${server.url}/${index}`)
    t.ok(await isLoggedIn(browser, server.url))
  }
  for (const login of logins.splice(6).toReversed()) await finish(login)
  await Promise.all(logins.map(finish))
  t.equal(provider.forms.length, 10)
  t.ok(await isLoggedIn(browser, server.url), 'the browser is logged in')
})

await test('GET /auth/callback: a login that was waiting for the store when all sessions were revoked does not become a session', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const store = new HeldStore()
  const { PUBLIC_URL: _, ...settings } = world.settings
  const server = await testServer(t, settings, store)
  const { browser } = world.visitor()
  const finishing = (await startLogin({ browser, server })).finish({ code: 'CR1' })
  await within(store.asked.promise, 'the store is asked')
  t.same(await (await operate(server, 'DELETE', { subject: 'CR1' })).json(), { ended: 0 })
  await delay(CLEARLY_LATER_MS)
  store.released.resolve()
  t.match((await finishing).url.search, 'auth_error=login_failed')
  t.notOk(await isLoggedIn(browser, server.url))
})

await test('a login that cannot end the sessions beyond the limit has replaced the one before, and does not fail', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, MAX_SESSIONS_PER_SUBJECT: '1' } })
  const { browser } = await world.user('alice')
  const login = await world.visitor(browser).startLogin()
  t.intercept(INDEX.list, 'memory', {
    value: () => {
      throw new StoreUnavailable(new Error('away'))
    },
  })
  const { url } = await login.finish({ code: 'alice' })
  t.notMatch(url.href, /auth_error/)
  t.ok(await isLoggedIn(browser, world.server.url))
  await until(() => failureCount(world.server.log, 'sessions beyond the limit could not be ended') === 1)
})
