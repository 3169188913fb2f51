import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { LoginCookies } from '../../src/login/login-cookies.ts'
import { LoginTransactions } from '../../src/login/login-transactions.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { held, isLoggedIn, scripted } from '../support/login/token-endpoint.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { testServer } from '../support/server/test-server.ts'
import { startWorld } from '../support/world.ts'

const LOGIN = '__Host-login-'

function nameOf({ state }: { state: string }): string {
  return LOGIN + state.slice(0, 8)
}

/** Starts a sign-up without a server. */
async function startSignup(
  store = new MemoryStore(),
): Promise<{ transactions: LoginTransactions; header: string; state: string }> {
  const secrets = ['a secret']
  const cookies = new LoginCookies({ prefix: '__Host-', secure: true }, new Changeable(secrets))
  const transactions = new LoginTransactions(store, new Envelope(new Changeable(secrets)), cookies, 60_000)
  const signup = {
    flow: 'signup',
    returnTo: '/chart',
    attributed: false,
    sessionKey: undefined,
    hasNonce: false,
  } as const
  const { ticket } = await transactions.start(undefined, signup)
  const { name, value, state } = ticket.cookie
  return { transactions, header: `${name}=${value}`, state }
}

await test('GET /auth/login and GET /auth/callback set the cookies that docs/reference.md describes', async (t) => {
  const { browser, startLogin } = await startWorld(t, {
    provider: scripted,
    settings: { LOGIN_TTL_SECONDS: '600', SESSION_MAX_SECONDS: '7200' },
  })
  const { arrival, finish } = await startLogin()
  const [line = ''] = arrival.hops[0]?.headers.getSetCookie() ?? []
  const [pair = ''] = line.split(';')
  t.match(
    line,
    /^__Host-login-[\w-]{8}=[\w-]{32}\.\w+\.[\w-]{22}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  t.ok(pair.length <= 120, `${pair.length} bytes`)
  t.notMatch(line, /domain/i)

  const { hops } = await finish()
  const lines = hops[0]?.headers.getSetCookie() ?? []
  const session = lines.find((each) => each.startsWith('__Host-session'))
  // A second less where more than half of one has passed meanwhile.
  t.match(
    session,
    /; Max-Age=(?:7200|7199); Path=\/; HttpOnly; Secure; SameSite=Strict$/,
    'the cookie lives until the absolute limit',
  )
  t.notMatch(session, /domain/i)
  // 32 random bytes and a signature of 32 bytes.
  t.match(session, /^__Host-session=[\w-]{43}\.[\w+/=]{43,44};/)
  const login = lines.find((each) => each.startsWith(LOGIN))
  t.match(login, /; Max-Age=(?:3600|3599);/, 'the cookie lives as long as the session, which ends with its token')
  t.equal(login?.split(';')[0], `${pair}.f`, 'the login cookie keeps its value, and says that the login has finished')
  t.equal(browser.named(LOGIN).length, 1)
})

await test('GET /auth/login stores an encrypted record that expires; GET /auth/callback removes the verifier before the exchange', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true, settings: { LOGIN_TTL_SECONDS: '600' } })
  const { provider } = world
  const client = await world.storeClient()
  const { state, finish } = await world.startLogin('/auth/login?return_to=/secret-page')
  const [loginKey = '', ...otherKeys] = await client.keys('*:login:*')
  t.same(otherKeys, [])
  const pending = await client.get(loginKey)
  const ttl = await client.pTTL(loginKey)
  t.ok(ttl > 590_000 && ttl <= 600_000)
  t.notOk(`${loginKey}${pending}`.includes(state))
  t.notMatch(pending, /secret-page/)

  const waiting = held()
  provider.behaviour = waiting.behaviour
  const finishing = finish()
  await waiting.asked
  const running = await client.get(loginKey)
  t.not(running, pending)
  const verifier = provider.forms[0]?.get('code_verifier') ?? ''
  t.ok(verifier.length >= 43)
  t.ok(
    String(running).length < String(pending).length - verifier.length,
    'the record is too short to hold the verifier',
  )
  waiting.release()
  await finishing
})

await test('GET /auth/login: an eleventh start deletes the oldest login cookie, that of a finished login first', async (t) => {
  const { browser, server, startLogin } = await startWorld(t, { provider: scripted })
  const names = (): string[] => browser.named(LOGIN).map(({ name }) => name)
  const logins = []
  for (let count = 0; count < 10; count++) logins.push(await startLogin())
  const [first, second, third] = logins
  if (first === undefined || second === undefined || third === undefined) return t.fail()
  await third.finish()
  await second.finish({ error: 'access_denied' })
  t.equal(names().length, 10)

  await startLogin()
  t.equal(names().length, 10)
  t.notOk(names().includes(nameOf(second)), 'the older one of the finished logins')
  await startLogin()
  t.notOk(names().includes(nameOf(third)))
  t.ok(names().includes(nameOf(first)), 'the oldest is still pending')
  const last = await startLogin()
  t.equal(names().length, 10)
  t.notOk(names().includes(nameOf(first)), 'then the oldest pending one')

  // The cookie of that login is gone, but the next login still replaces its session.
  const before = browser.clone()
  t.ok(await isLoggedIn(before, server.url))
  await last.finish()
  t.notOk(await isLoggedIn(before, server.url))
})

await test('GET /auth/callback: state_mismatch after the record expired, and a callback in time may finish late', async (t) => {
  const { provider, server, storeClient, startLogin } = await startWorld(t, { provider: scripted, redis: true })
  const client = await storeClient()
  const expired = await startLogin()
  await client.del((await client.keys('*:login:*'))[0] ?? '')
  t.equal((await expired.finish()).url.search, '?auth_error=state_mismatch')
  t.equal(provider.forms.length, 0)

  const slow = await startLogin()
  const [key = ''] = await client.keys('*:login:*')
  await client.pExpire(key, 2000)
  const waiting = held()
  provider.behaviour = waiting.behaviour
  const finishing = slow.finish()
  await waiting.asked
  t.ok((await client.pTTL(key)) > 10_000)
  waiting.release()
  t.equal((await finishing).url.href, `${server.url}/`)
  t.equal((await slow.finish()).url.href, `${server.url}/`)
})

await test('GET /auth/callback: state_mismatch for a record under other SESSION_SECRETS, and the record stays', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true })
  const { browser, server, settings } = world
  const client = await world.storeClient()
  const login = await world.startLogin()
  const other = await testServer(t, {
    ...settings,
    SESSION_SECRETS: 'another-secret-of-thirty-two-bytes-or-more',
  })
  const there = `${other.url}/auth/callback?code=x&state=${login.state}`
  const arrival = await browser.navigate(there, { from: login.authorize })
  t.equal(arrival.url.search, '?auth_error=state_mismatch')
  t.same(arrival.hops[0]?.headers.getSetCookie(), [])
  t.equal((await client.keys('*:login:*')).length, 1)
  t.equal((await login.finish()).url.href, `${server.url}/`, 'the login finishes where the record can be decrypted')
  const [old] = browser.named('__Host-session')
  t.notOk(await isLoggedIn(browser, other.url))
  t.same(browser.named('__Host-session'), [old], 'the session cookie is not cleared')
  t.ok(await isLoggedIn(browser, server.url))
})

await test('LoginTransactions.consume: one of many concurrent callbacks is fresh, the others are replayed', async (t) => {
  const { transactions, header, state } = await startSignup()
  const consumptions = Array.from({ length: 10 }, () => transactions.consume(header, state))
  const first = await Promise.race(consumptions)
  if (first.is !== 'fresh') return t.fail(first.is)
  const failed = { is: 'failed', error: 'invalid_grant', flow: 'signup', returnTo: '/chart' } as const
  await transactions.settle(first.ticket, failed)
  const outcomes = (await Promise.all(consumptions)).map(({ is }) => is)
  t.same(outcomes.toSorted(), ['fresh', ...Array<string>(9).fill('replayed')])
})

await test('LoginTransactions.consume: a repeated callback that waits reads the store ever more rarely', async (t) => {
  const store = new MemoryStore()
  const { transactions, header, state } = await startSignup(store)
  const first = await transactions.consume(header, state)
  if (first.is !== 'fresh') return t.fail(first.is)
  const reads = t.capture(store, 'readUntracked', store.readUntracked.bind(store))
  const startedAt = performance.now()
  const repeated = transactions.consume(header, state)
  let count = 0
  await until(() => (count += reads().length) === 5, 'the fifth read')
  t.ok(performance.now() - startedAt > 1400, '0.1, 0.2, 0.4 and 0.8 s between them')
  await transactions.settle(first.ticket, { is: 'failed', error: 'invalid_grant', flow: 'signup', returnTo: '/chart' })
  t.match(await repeated, { is: 'replayed', waited: true })
})

await test('LoginTransactions.consume: abandoned when the process that exchanged the code has died', async (t) => {
  const { transactions, header, state } = await startSignup()
  t.match(await transactions.consume(header, state), { is: 'fresh' })
  timeAhead(t)(20_000)
  t.same(await transactions.consume(header, state), { is: 'abandoned', flow: 'signup', returnTo: '/chart' })
})
