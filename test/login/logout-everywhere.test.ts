import { test } from 'tap'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { operate, IDENTITY, IDENTIFIED } from '../support/login/identity.ts'
import { oidcWorld } from '../support/login/oidc-world.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { held, isLoggedIn, sessionState, tokens, startLogin } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { testServer } from '../support/server/test-server.ts'
import type { JarBrowser } from '../support/browser/jar-browser.ts'
import { startWorld } from '../support/world.ts'
import { logOut } from '../support/user.ts'

/** Fails when the session after this many is to end. */
class FailingStore extends MemoryStore {
  endsLeft = Infinity

  override bury(...args: Parameters<MemoryStore['bury']>): ReturnType<MemoryStore['bury']> {
    return this.endsLeft-- > 0 ? super.bury(...args) : Promise.reject(new StoreUnavailable('a planted failure'))
  }
}

/** Longer than a count of other sessions is kept. */
const SOON_MS = 30_000

await test('POST /auth/logout?everywhere=true ends all sessions of the subject on every instance, and none of another subject', async (t) => {
  const { server, instance, user, provider } = await startWorld(t, { ...IDENTIFIED, redis: true })
  const other = await instance()
  const mine = [await user('CR1'), await user('CR1'), await user('CR1')].map((each) => each.browser)
  const { browser: foreign } = await user('CR2')
  const [first, ...rest] = mine
  if (first === undefined) throw new Error('no browser')
  for (const each of rest)
    t.ok(await isLoggedIn(each, `http://localhost:${other.port}`), 'cached by the other instance')
  const cookie = rest[0]?.cookieHeader(new URL(server.url), undefined) ?? ''
  const socket = new BrowserSocket(`ws://127.0.0.1:${other.port}/ws/session`, { origin: server.url, cookie })
  await socket.count(1)
  const answer = await logOut(first, server.url, '?everywhere=true')
  t.equal(answer.status, 204)
  t.match(await socket.closed, { code: 4401, reason: 'session_expired' })
  t.match(socket.texts.at(-1), '"reason":"logout"')
  for (const each of mine) t.notOk(await isLoggedIn(each, server.url))
  t.notOk(await isLoggedIn(rest[1] as JarBrowser, `http://localhost:${other.port}`))
  t.ok(await isLoggedIn(foreign, server.url))
  const line = server.log.find(({ audit }) => audit === 'logout_everywhere')
  t.match(line, { ended: 2, session: String, subject: String, client: String })
  const ended = server.log.filter(({ audit }) => audit === 'session_ended')
  t.equal(ended.length, 3)
  for (const each of ended) t.match(each, { reason: 'logout', subject: line?.['subject'], client: String })
  t.same(provider.revoked, ['of-CR1'], 'only the token of this browser’s session can be read, and revoked')
})

await test('POST /auth/logout?everywhere=true without a subject: 409, and this browser is logged out all the same', async (t) => {
  const { server, upstream, user } = await startWorld(t, IDENTIFIED)
  const { browser: other } = await user('CR1')
  upstream.onIdentity = (_request, response) => response.writeHead(500).end()
  const { browser } = await user('CR1')
  const answer = await logOut(browser, server.url, '?everywhere=true')
  t.equal(answer.status, 409)
  t.match(await answer.json(), { code: 'subject_unknown' })
  t.match(answer.headers.getSetCookie().join(), '__Host-session=; Max-Age=0')
  t.notOk(await isLoggedIn(browser, server.url))
  t.ok(await isLoggedIn(other, server.url))
  t.equal((await logOut(browser, server.url, '?everywhere=true')).status, 409, 'again, without a session')
})

await test('POST /auth/logout: any other value of everywhere is a 400, and no session ends', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const { browser } = await world.user('CR1')
  for (const query of ['?everywhere=1', '?everywhere', '?everywhere=TRUE', '?everywhere=true&everywhere=true']) {
    const answer = await logOut(browser, world.server.url, query)
    t.equal(answer.status, 400, query)
    t.match(await answer.json(), { code: 'validation_failed', errors: [{ field: 'everywhere' }] })
  }
  t.ok(await isLoggedIn(browser, world.server.url))
  t.equal((await logOut(browser, world.server.url, '?anything=else')).status, 204)
})

await test('POST /auth/logout?everywhere=true: 503 while the store is down, and it can be repeated', async (t) => {
  const { server, redis, user } = await startWorld(t, { ...IDENTIFIED, redis: true })
  const { browser: other } = await user('CR1')
  const { browser } = await user('CR1')
  redis?.process.kill('SIGSTOP')
  t.equal((await logOut(browser, server.url, '?everywhere=true')).status, 503)
  redis?.process.kill('SIGCONT')
  let status = 503
  await until(async () => (status = (await logOut(browser, server.url, '?everywhere=true')).status) !== 503)
  t.equal(status, 204, 'the session with which to repeat it is still there')
  for (const each of [browser, other]) t.notOk(await isLoggedIn(each, server.url))
})

await test('POST /auth/logout: 503 while the store is away for a moment, and its repetition does what was asked', async (t) => {
  for (const query of ['?everywhere=true&provider=true', '?everywhere=true', '?provider=true']) {
    const world = await oidcWorld(t, { settings: { ID_TOKEN_HINT: 'true' } })
    const { PUBLIC_URL: _, ...settings } = world.settings
    const store = new FailingStore()
    const server = await testServer(t, settings, store)
    const { browser } = await world.user('ada', {}, server)
    store.endsLeft = 0
    browser.page = new URL(server.url)
    t.equal((await logOut(browser, server.url, query)).status, 503)
    store.endsLeft = Infinity
    const again = await logOut(browser, server.url, query)
    t.ok(again.ok, query)
    if (query.includes('provider')) t.match(await again.json(), { logout_url: /id_token_hint/ })
    t.notOk(await isLoggedIn(browser, server.url))
  }
})

await test('An order to end all sessions that fails half-way leaves an audit line that says so', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const store = new FailingStore()
  const { PUBLIC_URL: _, ...settings } = world.settings
  const server = await testServer(t, settings, store)
  const { browser } = await world.user('CR1', server)
  for (const user of ['CR1', 'CR1', 'CR2', 'CR2', 'CR2']) await world.user(user, server)
  const lines = (audit: string) => server.log.filter((line) => line['audit'] === audit)
  const orders = [
    { audit: 'logout_everywhere', send: () => logOut(browser, server.url, '?everywhere=true') },
    { audit: 'sessions_revoked', send: () => operate(server, 'DELETE', { subject: 'CR2' }) },
  ]
  for (const { audit, send } of orders) {
    store.endsLeft = 1
    t.equal((await send()).status, 503)
    const [line, ...more] = lines(audit)
    const cause = { message: 'the session store is unavailable' }
    t.match(line, { level: 40, outcome: 'incomplete', subject: /^[\w-]{10}$/, client: '127.0.0.1', cause })
    t.notOk(line && 'ended' in line, 'it is not known yet')
    t.same(more, [])
    const ended = lines('session_ended').filter(({ reqId }) => reqId === line?.['reqId'])
    t.equal(ended.length, 1, 'the one that has ended has a line')
  }
  store.endsLeft = Infinity
  t.same(await (await operate(server, 'DELETE', { subject: 'CR2' })).json(), { ended: 2 }, 'again, with success')
  const [, done] = lines('sessions_revoked')
  t.match(done, { ended: 2 })
  t.notOk(done && 'outcome' in done)
})

await test('A login that was waiting for its token when its user logged out everywhere does not become a session', async (t) => {
  const { server, provider, user, visitor } = await startWorld(t, IDENTIFIED)
  const { browser } = await user('CR1')
  const waiting = held(tokens({ access_token: 'of-CR1' }))
  provider.behaviour = waiting.behaviour
  const { browser: late } = visitor()
  const finishing = (await startLogin({ browser: late, server })).finish({ code: 'CR1' })
  await waiting.asked
  t.equal((await logOut(browser, server.url, '?everywhere=true')).status, 204)
  waiting.release()
  t.match((await finishing).url.search, 'auth_error=login_failed')
  t.notOk(await isLoggedIn(late, server.url))
  t.same(late.named('__Host-session'), [])
  t.match(
    server.log.findLast(({ audit }) => audit === 'login_failed'),
    { reason: 'ended' },
  )
  await until(() => provider.revoked.length === 2, 'both tokens are revoked')
  const { arrival } = await user('CR1')
  t.equal(arrival.url.search, '', 'a login that begins afterwards succeeds')
})

await test('MAX_SESSIONS_PER_SUBJECT: a login beyond it ends the oldest live session', async (t) => {
  const { server, user } = await startWorld(t, {
    ...IDENTIFIED,
    settings: { ...IDENTITY, MAX_SESSIONS_PER_SUBJECT: '2' },
    redis: true,
  })
  const [{ browser: first }, { browser: second }] = [await user('CR1'), await user('CR1')]
  const { browser: foreign } = await user('CR2')
  second.page = new URL(server.url)
  t.equal((await logOut(second, server.url)).status, 204)
  const { browser: third } = await user('CR1')
  t.ok(await isLoggedIn(first, server.url), 'a session that was logged out does not count')
  const { browser: fourth } = await user('CR1')
  t.notOk(await isLoggedIn(first, server.url))
  for (const each of [third, fourth, foreign]) t.ok(await isLoggedIn(each, server.url))
  t.match(
    server.log.findLast(({ audit }) => audit === 'session_ended'),
    { reason: 'replaced', subject: String },
  )
})

await test('MAX_SESSIONS_PER_SUBJECT: a session that has reached its idle limit does not count', async (t) => {
  const settings = { MAX_SESSIONS_PER_SUBJECT: '2', SESSION_IDLE_SECONDS: '2' }
  const { server, user } = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, ...settings }, redis: true })
  const { browser: used } = await user('CR1')
  await user('CR1')
  used.page = new URL(server.url)
  const isAlone = async (): Promise<boolean> => {
    await used.fetch('/auth/session', { method: 'POST', headers: { 'x-csrf': '1' } })
    const { sessions } = (await (await operate(server, 'GET', { subject: 'CR1' })).json()) as { sessions: unknown[] }
    return sessions.length === 1
  }
  await until(isAlone, 'the other session ends')
  const { browser: last } = await user('CR1')
  t.same([await isLoggedIn(used, server.url), await isLoggedIn(last, server.url)], [true, true])
})

await test('MAX_SESSIONS_PER_SUBJECT: a login whose session could not be stored does not count', async (t) => {
  const { server, storeClient, user, upstream } = await startWorld(t, {
    ...IDENTIFIED,
    settings: { ...IDENTITY, MAX_SESSIONS_PER_SUBJECT: '2' },
    redis: true,
  })
  const redis = await storeClient()
  const { browser: first } = await user('CR1')
  const { onIdentity: answer } = upstream
  upstream.onIdentity = async (request, response) => {
    await redis.aclSetUser('default', '-set')
    answer(request, response)
  }
  t.match((await user('CR1')).arrival.url.search, 'auth_error=')
  await redis.aclSetUser('default', '+set')
  upstream.onIdentity = answer
  const { browser: last } = await user('CR1')
  t.same([await isLoggedIn(first, server.url), await isLoggedIn(last, server.url)], [true, true])
  t.same(
    server.log.filter(({ audit }) => audit === 'session_ended'),
    [],
  )
})

await test('GET /auth/session?others=true counts the other live sessions of the subject', async (t) => {
  const { server, user } = await startWorld(t, IDENTIFIED)
  const { browser } = await user('CR1')
  const { browser: second } = await user('CR1')
  await user('CR2')
  browser.page = second.page = new URL(server.url)
  const others = async () =>
    (await browser.fetch('/auth/session?others=true')).json() as Promise<{ other_sessions?: number }>
  t.match(await others(), { subject: 'CR1', other_sessions: 1 })
  t.equal((await logOut(second, server.url)).status, 204)
  await until(async () => (await others()).other_sessions === 0, 'the logout is noticed', SOON_MS)
  t.notOk('other_sessions' in (await sessionState(browser, server.url)), 'only when asked')
  t.equal((await browser.fetch('/auth/session?others=yes')).status, 400)
})

await test('GET /auth/session?others=true from many tabs reads the sessions of the subject once in five seconds', async (t) => {
  const { server, storeClient, user } = await startWorld(t, { ...IDENTIFIED, redis: true })
  const redis = await storeClient()
  const { browser } = await user('CR1')
  await user('CR1')
  browser.page = new URL(server.url)
  await redis.configResetStat()
  const startedAt = performance.now()
  for (let times = 0; times < 5; times++) {
    const polls = Array.from({ length: 20 }, () => browser.fetch('/auth/session?others=true'))
    for (const poll of polls) t.match(await (await poll).json(), { other_sessions: 1 })
  }
  const readings = /cmdstat_hgetall:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]
  const most = 1 + Math.floor((performance.now() - startedAt) / 5000)
  t.ok(Number(readings) >= 1 && Number(readings) <= most, `${readings} readings, at most ${most}`)
})
