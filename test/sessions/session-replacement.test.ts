import { test } from 'tap'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { instanceOn, newSession } from '../support/sessions/session-instance.ts'
import { held, json, isLoggedIn, tokens, scripted } from '../support/login/token-endpoint.ts'
import { within } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const LOGIN = '__Host-login-'

await test('a second user in the same browser ends the session of the first', async (t) => {
  const { browser, provider, server, logIn, startLogin } = await startWorld(t, { provider: scripted })
  await logIn()
  const first = browser.clone()
  provider.behaviour = tokens({ access_token: 'of-the-second-user' })
  const login = await startLogin()
  t.ok(await isLoggedIn(first, server.url), 'the old session lives until the login succeeds')
  await login.finish()
  t.notOk(await isLoggedIn(first, server.url))
  t.ok(await isLoggedIn(browser, server.url))
  t.not(browser.named('__Host-session')[0]?.value, first.named('__Host-session')[0]?.value)
  t.match(
    server.log.find(({ audit }) => audit === 'session_ended'),
    { reason: 'replaced' },
  )
})

await test('a login that a link of another site started replaces the session, although it carried no Strict cookie', async (t) => {
  const { browser, server, logIn } = await startWorld(t, { provider: scripted })
  await logIn()
  const first = browser.clone()
  const partner = new URL('https://partner.example/')
  const { url: authorize } = await browser.navigate(`${server.url}/auth/signup`, { from: partner })
  const query = new URLSearchParams({ code: 'x', state: authorize.searchParams.get('state') ?? '' })
  await browser.navigate(`${server.url}/auth/callback?${query.toString()}`, { from: authorize })
  t.notOk(await isLoggedIn(first, server.url))
  t.ok(await isLoggedIn(browser, server.url))
})

await test('a login replaces a session that is known only from the start of the login', async (t) => {
  const { browser, server, logIn } = await startWorld(t, { provider: scripted })
  await logIn()
  const first = browser.clone()
  for (const [key, { name }] of browser.cookies) if (name.startsWith(LOGIN)) browser.cookies.delete(key)
  await logIn()
  t.notOk(await isLoggedIn(first, server.url))
})

await test('a login replaces the session that another tab created meanwhile', async (t) => {
  const { browser, server, startLogin } = await startWorld(t, { provider: scripted })
  const [first, second] = [await startLogin(), await startLogin()]
  await second.finish()
  const before = browser.clone()
  await first.finish()
  t.notOk(await isLoggedIn(before, server.url))
  t.ok(await isLoggedIn(browser, server.url))
})

await test('a login that fails does not end the live session', async (t) => {
  const { browser, provider, server, logIn, startLogin } = await startWorld(t, { provider: scripted })
  await logIn()
  for (const behaviour of [json({ error: 'invalid_grant' }, 400), json('', 503)]) {
    provider.behaviour = behaviour
    const arrival = await logIn()
    t.match(arrival.url.search, /auth_error/)
    t.ok(await isLoggedIn(browser, server.url))
  }
  await (await startLogin()).finish({ error: 'access_denied' })
  t.ok(await isLoggedIn(browser, server.url))
  // The provider is on the same site, so the callback carries the Strict cookie.
  const { state } = await startLogin()
  const callback = `${server.url}/auth/callback?error=access_denied&state=${state}`
  const arrival = await browser.navigate(callback, { from: new URL(server.url) })
  t.same(arrival.hops[0]?.headers.getSetCookie(), [])
  t.ok(await isLoggedIn(browser, server.url))
})

await test('GET /auth/callback redirects with try_later while the store is down', async (t) => {
  const { browser, provider, server, redis, startLogin } = await startWorld(t, { provider: scripted, redis: true })
  const login = await startLogin('/auth/login?return_to=/chart')
  const during = await startLogin('/auth/login?return_to=/chart')
  const waiting = held()
  provider.behaviour = waiting.behaviour
  const finishing = during.finish()
  await waiting.asked
  await redis?.close()
  waiting.release()
  const known = '?auth_error=try_later&flow=login&return_to=%2Fchart'
  t.equal((await finishing).url.search, known, 'during the token request')
  t.equal((await login.finish()).url.search, '?auth_error=try_later', 'the transaction cannot be read')
  const start = await browser.navigate(`${server.url}/auth/signup?return_to=/chart`)
  t.equal(start.url.search, known.replace('login', 'signup'))
  t.equal(start.hops[0]?.status, 303)
  t.same(start.hops[0]?.headers.getSetCookie(), [])
  t.same(browser.named('__Host-session'), [])
  t.equal(provider.forms.length, 1)
  while (provider.revoked.length === 0) await new Promise((resolve) => void setTimeout(resolve, 5))
  t.same(provider.revoked, ['the-access-token'], 'the unused token is revoked')
})

/** A store that announces no changes, like a Cluster. While it is held, reads wait with what they have found. */
class HeldStore extends MemoryStore {
  override readonly staleMs = 1000 as number
  readonly asked = Promise.withResolvers<void>()
  hold: Promise<void> | undefined

  override onChange(): void {
    // It announces nothing.
  }

  override async read(key: string): ReturnType<MemoryStore['read']> {
    const found = await super.read(key)
    if (this.hold !== undefined) this.asked.resolve()
    await this.hold
    return found
  }
}

for (const [outcome, cause] of [
  ['finds it live', undefined],
  ['fails', new StoreUnavailable(undefined)],
] as const) {
  await test(`the sockets of a replaced session are closed, although a read that began before its end ${outcome}`, async (t) => {
    const awake = setInterval(() => undefined, 50)
    t.teardown(() => clearInterval(awake))
    const store = new HeldStore()
    const instance = instanceOn(store)
    const { sessions, reader, endings, cookie } = instance
    const found = await reader.read(cookie(await newSession(instance)))
    if (found.is !== 'live') return t.fail(found.is)
    const { session } = found
    const held = Promise.withResolvers<void>()
    store.hold = held.promise
    const ended = new Promise<string>((resolve) => void endings.watch(session, { isUse: false, onEnd: resolve }))
    await store.asked.promise
    await sessions.end(session.key, 'replaced')
    if (cause === undefined) held.resolve()
    else held.reject(cause)
    t.equal(await within(ended, 'the end'), 'replaced')
  })
}
