import { test } from 'tap'
import { LoginCookies } from '../../src/login/login-cookies.ts'
import { LoginTransactions } from '../../src/login/login-transactions.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { held, loginWorld, isLoggedIn, startLogin, storeClient } from '../support/token-endpoint.ts'
import { testServer } from '../support/world.ts'

const LOGIN = '__Host-login-'

function nameOf({ state }: { state: string }): string {
  return LOGIN + state.slice(0, 8)
}

/** A started sign-up, without a server around it. */
async function started(): Promise<{ transactions: LoginTransactions; header: string; state: string }> {
  const secrets = ['a secret']
  const cookies = new LoginCookies({ prefix: '__Host-', secure: true }, secrets)
  const transactions = new LoginTransactions(new MemoryStore(), new Envelope(secrets), cookies, 60_000)
  const wish = { flow: 'signup', returnTo: '/chart', attributed: false, sessionKey: undefined } as const
  const { ticket } = await transactions.start(undefined, wish)
  const { name, value, state } = ticket.cookie
  return { transactions, header: `${name}=${value}`, state }
}

await test('the cookies of a login are those of docs/reference.md', async (t) => {
  const world = await loginWorld(t, { settings: { LOGIN_TTL_SECONDS: '600', SESSION_MAX_SECONDS: '7200' } })
  const { browser } = world
  const { arrival, finish } = await startLogin(world)
  const [line = ''] = arrival.hops[0]?.headers.getSetCookie() ?? []
  const [pair = ''] = line.split(';')
  t.match(
    line,
    /^__Host-login-[\w-]{8}=[\w-]{32}\.\w+\.[\w-]{22}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  t.ok(pair.length <= 120, `${pair.length} bytes in all`)
  t.notMatch(line, /domain/i)

  const { hops } = await finish()
  const lines = hops[0]?.headers.getSetCookie() ?? []
  const session = lines.find((each) => each.startsWith('__Host-session'))
  t.match(session, /; Max-Age=7200; Path=\/; HttpOnly; Secure; SameSite=Strict$/, 'the absolute limit')
  t.notMatch(session, /domain/i)
  // 32 random bytes and a signature of 32 bytes.
  t.match(session, /^__Host-session=[\w-]{43}\.[\w+/=]{43,44};/)
  const login = lines.find((each) => each.startsWith(LOGIN))
  t.match(login, /; Max-Age=3600;/, 'lives as long as the session, which ends with its token')
  t.equal(login?.split(';')[0], pair, 'unchanged')
  t.equal(browser.named(LOGIN).length, 1)
})

await test('the record of a login is short-lived, unreadable, and loses its verifier before the exchange', async (t) => {
  const world = await loginWorld(t, { redis: true, settings: { LOGIN_TTL_SECONDS: '600' } })
  const { endpoint } = world
  const client = await storeClient(t, world)
  const { state, finish } = await startLogin(world, '/auth/login?return_to=/secret-page')
  const [key = '', ...more] = await client.keys('*')
  const keys = [key, ...more].filter((name) => name.includes(':login:'))
  t.equal(keys.length, 1)
  const [loginKey = ''] = keys
  const pending = await client.get(loginKey)
  const ttl = await client.pTTL(loginKey)
  t.ok(ttl > 590_000 && ttl <= 600_000)
  t.notOk(`${loginKey}${pending}`.includes(state))
  t.notMatch(pending, /secret-page/)

  const waiting = held()
  endpoint.behaviour = waiting.behaviour
  const finishing = finish()
  await waiting.asked
  const running = await client.get(loginKey)
  t.not(running, pending)
  const verifier = endpoint.forms[0]?.get('code_verifier') ?? ''
  t.ok(verifier.length >= 43)
  t.ok(String(running).length < String(pending).length - verifier.length, 'too short to hold the verifier')
  waiting.release()
  await finishing
})

await test('an eleventh start deletes the oldest cookie, finished ones first', async (t) => {
  const world = await loginWorld(t)
  const { browser, server } = world
  const names = (): string[] => browser.named(LOGIN).map(({ name }) => name)
  const logins = []
  for (let count = 0; count < 10; count++) logins.push(await startLogin(world))
  const [first, second, third] = logins
  if (first === undefined || second === undefined || third === undefined) return t.fail()
  await third.finish()
  await second.finish({ error: 'access_denied' })
  t.equal(names().length, 10)

  await startLogin(world)
  t.equal(names().length, 10)
  t.notOk(names().includes(nameOf(second)), 'of those that are over, the older one')
  await startLogin(world)
  t.notOk(names().includes(nameOf(third)))
  t.ok(names().includes(nameOf(first)), 'the oldest is still pending')
  const last = await startLogin(world)
  t.equal(names().length, 10)
  t.notOk(names().includes(nameOf(first)), 'then the oldest of all')

  // Its cookie is gone, but the session it made is not forgotten.
  const before = browser.clone()
  t.ok(await isLoggedIn(before, server.url))
  await last.finish()
  t.notOk(await isLoggedIn(before, server.url))
})

await test('a login that took too long is a mismatch, and one begun in time may end late', async (t) => {
  const world = await loginWorld(t, { redis: true })
  const { endpoint, server } = world
  const client = await storeClient(t, world)
  const late = await startLogin(world)
  await client.del((await client.keys('*:login:*'))[0] ?? '')
  t.equal((await late.finish()).url.search, '?auth_error=state_mismatch')
  t.equal(endpoint.forms.length, 0)

  const slow = await startLogin(world)
  const [key = ''] = await client.keys('*:login:*')
  await client.pExpire(key, 2000)
  const waiting = held()
  endpoint.behaviour = waiting.behaviour
  const finishing = slow.finish()
  await waiting.asked
  t.ok((await client.pTTL(key)) > 10_000)
  waiting.release()
  t.equal((await finishing).url.href, `${server.url}/`)
  t.equal((await slow.finish()).url.href, `${server.url}/`)
})

await test('a record that cannot be read is left alone', async (t) => {
  const world = await loginWorld(t, { redis: true })
  const { browser, server, settings } = world
  const client = await storeClient(t, world)
  const login = await startLogin(world)
  const stranger = await testServer(t, {
    ...settings,
    SESSION_SECRETS: 'another-secret-of-thirty-two-bytes-or-more',
  })
  const there = `${stranger.url}/auth/callback?code=x&state=${login.state}`
  const arrival = await browser.navigate(there, { from: login.authorize })
  t.equal(arrival.url.search, '?auth_error=state_mismatch')
  t.same(arrival.hops[0]?.headers.getSetCookie(), [])
  t.equal((await client.keys('*:login:*')).length, 1)
  t.equal((await login.finish()).url.href, `${server.url}/`, 'and good where it is understood')
  const [old] = browser.named('__Host-session')
  t.notOk(await isLoggedIn(browser, stranger.url))
  t.same(browser.named('__Host-session'), [old], 'neither cleared nor deleted')
  t.ok(await isLoggedIn(browser, server.url))
})

await test('of many callbacks at the same moment one carries the login on', async (t) => {
  const { transactions, header, state } = await started()
  const consumptions = Array.from({ length: 10 }, () => transactions.consume(header, state))
  const first = await Promise.race(consumptions)
  if (first.is !== 'fresh') return t.fail(first.is)
  const failed = { is: 'failed', error: 'invalid_grant', flow: 'signup', returnTo: '/chart' } as const
  await transactions.settle(first.ticket, failed)
  const outcomes = (await Promise.all(consumptions)).map(({ is }) => is)
  t.same(outcomes.toSorted(), ['fresh', ...Array<string>(9).fill('replayed')])
})

await test('a login whose process died in the middle comes to an end', async (t) => {
  const { transactions, header, state } = await started()
  t.match(await transactions.consume(header, state), { is: 'fresh' })
  const now = Date.now
  t.teardown(() => (Date.now = now))
  Date.now = () => now() + 20_000
  const again = await transactions.consume(header, state)
  Date.now = now
  t.same(again, { is: 'abandoned', flow: 'signup', returnTo: '/chart' })
})
