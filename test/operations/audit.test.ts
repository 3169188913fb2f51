import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { request, type ServerResponse } from 'node:http'
import { test } from 'tap'
import { logTag } from '../../src/telemetry/log.ts'
import { tokens, scripted } from '../support/login/token-endpoint.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { rawUpstream } from '../support/upstream/raw-upstream.ts'
import { until, within } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { SECRETS, type TestServer } from '../support/server/test-server.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'
import { PUBLIC, TRADING, sendTo } from '../support/user.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'

const CLIENT = '127.0.0.1'
const ACCOUNT = 'VRTC100'

type Line = TestServer['log'][number]

/** Waits for the audit line of this kind. @throws Error if there is more than one */
async function audited({ log }: TestServer, audit: string): Promise<Line> {
  const lines = (): Line[] => log.filter((line) => line['audit'] === audit)
  await until(() => lines().length > 0, `an audit line ${audit}`)
  const [line, ...more] = lines()
  if (line === undefined || more.length > 0) throw new Error(`one audit line ${audit}, not ${1 + more.length}`)
  return line
}

/** Waits for a request line of this route and returns the last one. */
async function requested({ log }: TestServer, route: string): Promise<Line> {
  const line = (): Line | undefined => log.findLast((each) => each.msg === 'request' && each['route'] === route)
  await until(() => line() !== undefined, `a request line of ${route}`)
  return line() as Line
}

const call = ({ browser }: World<'scripted'>): Promise<Response> =>
  browser.fetch('/api/account/v1/nickname', { headers: { 'x-csrf': '1' } })

await test('The audit lines of a login and a logout have the session, the request and the client', async (t) => {
  const { server, logOut } = await startWorld(t, RELAY)
  const login = await audited(server, 'login')
  const { session } = login
  t.match(session, /^[\w-]{10}$/)
  const callback = await requested(server, '/auth/callback')
  t.match(login, { reqId: callback['reqId'], client: CLIENT })
  t.equal(callback['session'], session)
  t.equal((await logOut()).status, 204)
  const ended = await audited(server, 'session_ended')
  const logout = await requested(server, '/auth/logout')
  t.match(ended, { reason: 'logout', session, reqId: logout['reqId'], client: CLIENT })
  t.equal(logout['session'], session)
})

await test('POST /auth/logout: the request line of a 503 has the session, that of a made-up cookie has none', async (t) => {
  const { server, redis, logIn, logOut } = await startWorld(t, { provider: scripted, redis: true })
  await logIn()
  const { session } = await audited(server, 'login')
  redis?.process.kill('SIGSTOP')
  t.equal((await logOut()).status, 503)
  t.equal((await requested(server, '/auth/logout'))['session'], session)
  redis?.process.kill('SIGCONT')
  const lines = server.log.length
  const headers = { 'x-csrf': '1', cookie: `__Host-session=${'a'.repeat(43)}.${'b'.repeat(43)}` }
  await until(async () => (await fetch(`${server.url}/auth/logout`, { method: 'POST', headers })).status === 204)
  await until(() => server.log.slice(lines).some(({ route, status }) => route === '/auth/logout' && status === 204))
  t.equal(server.log.slice(lines).findLast(({ route }) => route === '/auth/logout')?.['session'], '')
})

await test('session_ended of a replaced session has the request of the callback that replaced it', async (t) => {
  const { server, browser } = await startWorld(t, RELAY)
  const { session } = await audited(server, 'login')
  await logIn(browser, server.url)
  const ended = await audited(server, 'session_ended')
  const callback = await requested(server, '/auth/callback')
  t.match(ended, { reason: 'replaced', session, reqId: callback['reqId'], client: CLIENT })
  t.not(callback['session'], session, 'the request line has the new session')
})

await test('session_ended has the request of the API call whose token upstream refused', async (t) => {
  const world = await startWorld(t, RELAY)
  world.upstream.onRest = (_request, response) => answerJson(response, 401, {})
  t.equal((await call(world)).status, 401)
  const ended = await audited(world.server, 'session_ended')
  const request = await requested(world.server, '/api/account/v1/nickname')
  const { session } = await audited(world.server, 'login')
  t.match(ended, { reason: 'refused', session, reqId: request['reqId'], client: CLIENT })
})

await test('session_ended has the request of the handshake whose one-time URL upstream refused', async (t) => {
  const world = await startWorld(t, RELAY)
  world.upstream.onOtp = (_request, response) => answerJson(response, 401, {})
  t.match(await world.socket(TRADING).closed, { code: 4401 })
  const ended = await audited(world.server, 'session_ended')
  const refused = world.server.log.find(({ msg }) => msg === 'relay refused')
  t.match(ended, { reason: 'refused', reqId: refused?.['reqId'], client: CLIENT })
  t.match(refused, { account: /^[\w-]{10}$/, client: CLIENT })
})

await test('session_ended of an expired session has neither a request nor a client', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: { SESSION_MAX_SECONDS: '2' } })
  await world.socket(TRADING).closed
  const ended = await audited(world.server, 'session_ended')
  t.equal(ended['reason'], 'expired')
  for (const name of ['reqId', 'client']) t.notOk(name in ended, name)
})

await test('token_refreshed has the session and no token', async (t) => {
  const { url } = await rawUpstream(t)
  const { provider, browser, server, logIn } = await startWorld(t, { provider: scripted, settings: { API_URL: url } })
  provider.behaviour = tokens({ expires_in: 0.001, refresh_token: 'the-first-refresh-token' })
  await logIn()
  provider.behaviour = tokens({
    access_token: 'the-second-access-token',
    refresh_token: 'the-second-refresh-token',
  })
  browser.page = new URL(server.url)
  const response = await browser.fetch('/api/account/v1/nickname', { headers: { 'x-csrf': '1' } })
  t.equal(response.status, 200)
  const { session } = await audited(server, 'login')
  t.match(await audited(server, 'token_refreshed'), { session })
  t.notMatch(JSON.stringify(server.log), /the-(first|second)-/)
})

await test('refused, idempotency and browser_left name the account of the path by the hash that relays have', async (t) => {
  const { server, browser, upstream, socket } = await startWorld(t, RELAY)
  const account = logTag(SECRETS, `account:${ACCOUNT}`)
  const path = `/api/trading/v1/options/accounts/${ACCOUNT}/reset-demo-balance`
  const url = new URL(server.url)
  const headers = { 'x-csrf': '1', 'idempotency-key': 'twice', cookie: browser.cookieHeader(url, url) }
  for (let times = 0; times < 2; times++) {
    t.equal((await sendTo(server.port, 'POST', path, { headers })).status, 200)
  }
  t.match(await audited(server, 'idempotency'), { outcome: 'replayed', account })

  t.equal((await browser.fetch(path, { method: 'POST' })).status, 403)
  t.equal(await socket(TRADING, { origin: 'https://evil.example' }).refusedWith(), 403)
  const refused = () => server.log.filter(({ audit }) => audit === 'refused')
  await until(() => refused().length === 2)
  for (const line of refused()) t.match(line, { account })

  const arrived = Promise.withResolvers<ServerResponse>()
  upstream.onRest = (_request, response) => arrived.resolve(response)
  const { 'idempotency-key': _key, ...plain } = headers
  const leaving = request({ port: server.port, method: 'POST', path, headers: plain, agent: false })
  leaving.on('error', () => undefined).end()
  const response = await within(arrived.promise, 'a request arrives upstream')
  leaving.destroy()
  await until(() => server.log.some(({ status }) => status === 499), 'the server knows that the browser has left')
  answerJson(response, 200, {})
  t.match(await audited(server, 'browser_left'), { account })
  t.notMatch(JSON.stringify(server.log), ACCOUNT)
})

await test('A stranger causes a few audit lines, however often they try, and none of the events is lost', async (t) => {
  const { server, socket } = await startWorld(t, {
    upstream: 'scripted',
    settings: { TRUST_PROXY: '1', AUTH_STARTS_PER_MINUTE: '1' },
  })
  const TIMES = 30
  const forwarded = { 'x-forwarded-for': 'x'.repeat(5000) }
  const attempts: Record<string, () => Promise<unknown>> = {
    refused: () => fetch(`${server.url}/auth/logout`, { method: 'POST', headers: forwarded }),
    login_failed: () => fetch(`${server.url}/auth/callback?error=x&error_description=y`, { redirect: 'manual' }),
    login_not_started: () => fetch(`${server.url}/auth/login`, { redirect: 'manual' }),
    relay_refused: () => socket(TRADING).closed,
  }
  const lines = (kind: string): Line[] => server.log.filter(({ audit }) => audit === kind)
  await fetch(`${server.url}/auth/login`, { redirect: 'manual' })
  for (const attempt of Object.values(attempts)) for (let times = 0; times < TIMES; times++) await attempt()
  for (const kind of Object.keys(attempts)) t.equal(lines(kind).length, 5, kind)
  await server.close()
  for (const kind of Object.keys(attempts)) {
    t.equal(lines(kind).length, 6, kind)
    t.match(lines(kind).at(-1), { count: TIMES - 5, reqId: String, client: String }, kind)
  }
  t.ok(
    lines('refused').every(({ client }) => client === 'x'.repeat(64)),
    'an endless address is cut',
  )
})

await test('The lines of a trading socket have a keyed hash of the account, which operators can compute', async (t) => {
  const { server, socket, quiet } = await startWorld(t, RELAY)
  for (const path of [TRADING, TRADING, '/ws/trading/CR200', PUBLIC]) {
    const line = await socket(path).opened()
    line.socket.terminate()
  }
  await quiet()
  const opened = server.log.filter(({ msg }) => msg === 'relay opened').map(({ account }) => account)
  const ended = server.log.filter(({ audit }) => audit === 'relay_ended').map(({ account }) => account)
  t.same(new Set(ended), new Set(opened))
  const [first, second, other, ofPublicSocket] = opened
  t.equal(first, second, 'an account has one hash')
  t.not(first, other)
  t.equal(ofPublicSocket, undefined, 'a public socket has no account')
  t.notMatch(JSON.stringify(server.log), /VRTC100|CR200/)

  // The command of docs/operating/ computes the hash from the file of the secrets.
  const [, command = ''] = /```bash\n([^`]*account:[^`]*)```/.exec(OPERATING_GUIDE) ?? []
  t.match(command, `account:${ACCOUNT}`)
  const dir = t.testdir({ 'session-secrets': '' })
  writeFileSync(join(dir, 'session-secrets'), `${SECRETS},${'another secret '.repeat(3)}\n`)
  const env = { PATH: process.env['PATH'], SESSION_SECRETS_FILE: join(dir, 'session-secrets') }
  t.equal(execFileSync('bash', ['-euc', command], { env, encoding: 'utf8' }).trim(), first)
})
