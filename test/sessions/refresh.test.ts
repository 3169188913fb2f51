import { test, type Test } from 'tap'
import type { ProviderOptions } from '../../sandbox/provider.ts'
import { gated, type GatedProvider } from '../support/login/gated-provider.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { sessionState } from '../support/login/token-endpoint.ts'
import { fillRedis } from '../support/redis/full-redis.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { type World, startWorld } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'
const BULK = '/api/trading/v1/options/contracts/bulk-purchase/demo'
/** Token lifetimes in seconds. */
const OVER = 0.001
const HOUR = 3600

interface RefreshWorld extends Omit<World<'sandbox', GatedProvider>, 'call' | 'provider'> {
  readonly gate: GatedProvider
  readonly call: (init?: { method?: string; browser?: JarBrowser }) => Promise<Response>
}

/** A user who has just logged in, with a token that lives for `expiresIn` seconds. */
async function refreshWorld(
  t: Test,
  expiresIn: number,
  provider: Partial<ProviderOptions> = {},
): Promise<RefreshWorld> {
  const world = await startWorld(t, { provider: gated(provider), upstream: 'sandbox', redis: true })
  const { provider: gate, browser } = world
  gate.expiresIn = expiresIn
  await world.logIn()
  gate.expiresIn = HOUR
  const call: RefreshWorld['call'] = ({ method = 'GET', browser: page = browser } = {}) =>
    page.fetch(ACCOUNTS, { method, headers: { 'x-csrf': '1' } })
  return { ...world, gate, call }
}

async function codeOf(response: Response): Promise<unknown> {
  return ((await response.json()) as { code?: unknown }).code
}

/** A point at which a request waits until it is opened. */
function barrier(): {
  readonly hook: () => Promise<boolean>
  readonly reached: Promise<void>
  open: (go?: boolean) => void
} {
  const reached = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<boolean>()
  return {
    async hook() {
      reached.resolve()
      return opened.promise
    },
    reached: reached.promise,
    open: (go = true) => opened.resolve(go),
  }
}

await test('a call with an expired token renews it, and the session goes on', async (t) => {
  const { gate, call, browser, server, upstream } = await refreshWorld(t, OVER)
  const before = await sessionState(browser, server.url)
  t.equal((await call()).status, 200)
  t.equal(gate.refreshes.length, 1)
  t.equal((await call()).status, 200)
  t.equal(gate.refreshes.length, 1, 'the token is renewed once')
  const after = await sessionState(browser, server.url)
  t.equal(after['expires_at'], before['expires_at'], 'the absolute limit does not move')
  t.equal(after['scope'], before['scope'])
  t.ok(upstream.requests.every(({ credential }) => credential === 'bearer'))
  t.match(Object.fromEntries(gate.refreshes[0] ?? []), {
    grant_type: 'refresh_token',
    client_id: 'test-client',
  })
  t.equal(browser.named('__Host-session').length, 1)
})

await test('twenty calls on two instances cause one refresh', async (t) => {
  const { gate, call, instance, browser } = await refreshWorld(t, OVER)
  const other = await instance()
  const there = browser.clone()
  there.page = new URL(other.url)
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, index) => call({ browser: index % 2 === 0 ? browser : there })),
  )
  for (const { status } of responses) t.equal(status, 200)
  t.equal(gate.refreshes.length, 1)
})

await test('a GET does not wait for the renewal of a token that is valid for a while; a POST gets the new one', async (t) => {
  const { gate, call, upstream } = await refreshWorld(t, 600)
  const wait = barrier()
  gate.before = wait.hook
  timeAhead(t)(580_000)
  t.equal((await call()).status, 200)
  await wait.reached
  t.equal((await call()).status, 200)
  const ordering = call({ method: 'POST' })
  t.equal((await call()).status, 200)
  t.equal(upstream.requests.length, 3, 'the POST waits')
  wait.open()
  t.equal((await ordering).status, 400, 'upstream answers the POST, which has no body')
  t.equal(gate.refreshes.length, 1)
  t.equal((await call()).status, 200)
  const [old, , , ...renewed] = upstream.requests.map(({ headers }) => headers['authorization'])
  t.equal(renewed.length, 2)
  t.ok(renewed.every((bearer) => bearer !== old))
})

await test('a GET whose token upstream refuses early is repeated with a renewed one', async (t) => {
  const { gate, call, upstream } = await refreshWorld(t, HOUR, { accessTokenSeconds: 2 })
  const { provider } = gate
  await until(async () => {
    const alive = await Promise.all([...provider.issued].map((token) => provider.isActive(token)))
    return alive.every((token) => token === undefined)
  })
  t.equal((await call()).status, 200)
  t.equal(gate.refreshes.length, 1)
  t.equal(upstream.requests.length, 2, 'the call is repeated once')
})

await test('while the provider is down a call gets provider_unavailable, and the session goes on', async (t) => {
  const { gate, call, browser, server } = await refreshWorld(t, OVER)
  gate.before = async () => false
  const response = await call()
  t.equal(response.status, 503)
  t.equal(await codeOf(response), 'provider_unavailable')
  t.match(response.headers.get('retry-after'), /^[1-9]\d*$/)
  t.ok((await sessionState(browser, server.url)).authenticated)
  gate.before = async () => true
  await until(async () => (await call()).status === 200, 'the session goes on when the provider is back')
})

await test('while the provider is down a bulk purchase goes on, since it carries no token of the session', async (t) => {
  const { gate, call, browser, upstream } = await refreshWorld(t, OVER)
  gate.before = async () => false
  for (const headers of [{}, { 'idempotency-key': 'a-key' }]) {
    const response = await browser.fetch(BULK, { method: 'POST', headers: { 'x-csrf': '1', ...headers }, body: '{}' })
    t.equal(response.status, 400, 'upstream answers')
  }
  t.same(
    upstream.requests.map(({ path, headers }) => [path, headers['authorization']]),
    Array.from({ length: 2 }, () => [BULK.slice('/api'.length), undefined]),
  )
  t.equal(gate.refreshes.length, 0)
  t.equal(await codeOf(await call()), 'provider_unavailable')
})

await test('invalid_grant for a refresh ends the session with session_expired', async (t) => {
  const { gate, call, browser, server } = await refreshWorld(t, OVER)
  await gate.provider.revokeAll()
  const response = await call()
  t.equal(response.status, 401)
  t.equal(await codeOf(response), 'session_expired')
  t.notOk((await sessionState(browser, server.url)).authenticated)
  t.match(
    server.log.find(({ audit }) => audit === 'session_ended'),
    { reason: 'refused' },
  )
})

await test('invalid_client for a refresh does not end the session, and is logged as an error', async (t) => {
  const { gate, call, browser, instance } = await refreshWorld(t, OVER)
  const wrong = await instance({ CLIENT_ID: 'unknown-client' })
  const there = browser.clone()
  there.page = new URL(wrong.url)
  const response = await call({ browser: there })
  t.equal(response.status, 503)
  t.equal(await codeOf(response), 'provider_unavailable')
  t.match(
    wrong.log.find(({ msg }) => msg === 'the provider refused a refresh'),
    { level: 50, code: 'invalid_client' },
  )
  t.equal((await call()).status, 200)
  t.equal(gate.refreshes.length, 2)
})

for (const moment of ['before', 'after'] as const) {
  await test(`a logout ${moment} the provider renews the token revokes every token and ends the session`, async (t) => {
    const { gate, call, browser, server } = await refreshWorld(t, OVER)
    const wait = barrier()
    gate[moment] = wait.hook
    const stolen = browser.clone()
    const calling = call({ browser: stolen })
    await wait.reached
    const logout = await browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })
    t.equal(logout.status, 204)
    wait.open()
    const response = await calling
    t.equal(response.status, 401)
    t.ok(['session_expired', 'login_required'].includes(String(await codeOf(response))))
    // The tokens that the session had and, if the provider issued any, the new ones.
    await until(() => gate.revoked.length >= (moment === 'before' ? 2 : 4))
    await until(async () => {
      const alive = await Promise.all([...gate.provider.issued].map((token) => gate.provider.isActive(token)))
      return alive.every((token) => token === undefined)
    })
    t.notOk((await sessionState(stolen, server.url)).authenticated, 'the session is not brought back')
  })
}

await test('an outage of Redis between refresh and save does not lose the new token', async (t) => {
  const { gate, call, redis } = await refreshWorld(t, OVER)
  const wait = barrier()
  gate.after = wait.hook
  const calling = call()
  await wait.reached
  redis?.process.kill('SIGSTOP')
  wait.open()
  // Longer than the command timeout.
  await new Promise((resolve) => void setTimeout(resolve, 2000))
  redis?.process.kill('SIGCONT')
  const response = await calling
  t.equal(response.status, 200)
  t.equal((await call()).status, 200)
  t.equal(gate.refreshes.length, 1)
})

await test('a full Redis refuses new logins, but renews tokens and logs users out', async (t) => {
  const { call, redis, browser, server, gate } = await refreshWorld(t, OVER)
  const full = await fillRedis(t, redis?.url ?? '')
  gate.expiresIn = OVER
  t.equal((await call()).status, 200)
  gate.expiresIn = HOUR
  t.equal((await call()).status, 200, 'the token is renewed again and again')
  t.equal((await sessionState(browser, server.url))['authenticated'], true)
  await until(async () => {
    await full.fillUp()
    const start = await fetch(`${server.url}/auth/login`, { redirect: 'manual' })
    return start.headers.get('location')?.includes('auth_error=try_later') === true
  }, 'a new login is refused')
  t.equal((await browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })).status, 204)
  t.equal((await sessionState(browser, server.url))['authenticated'], false)
})
