import { test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { operate, IDENTITY, IDENTIFIED } from '../support/login/identity.ts'
import { end, listed, request, tagOf } from '../support/login/own-sessions.ts'
import { isLoggedIn } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'
import { logOut } from '../support/user.ts'
import { exactly } from '../support/exactly.ts'

const FIREFOX = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0'
const NEVER = 'A'.repeat(16)

for (const redis of [true, false]) {
  await test(`GET /auth/sessions lists the sessions of the subject, the newest first, ${redis ? 'in Redis' : 'in memory'}`, async (t) => {
    const { server, user, visitor } = await startWorld(t, { ...IDENTIFIED, redis })
    const { browser: first } = await user('CR1')
    await user('CR2')
    const { browser: second, logIn } = visitor()
    second.userAgent = FIREFOX
    await logIn('CR1')
    const before = Math.floor(Date.now() / 1000)
    const response = await request(first, server, '/auth/sessions')
    t.equal(response.status, 200)
    t.equal(response.headers.get('cache-control'), 'no-store')
    const { sessions, now } = (await response.json()) as { sessions: Record<string, unknown>[]; now: number }
    t.ok(now >= before && now <= before + 60)
    const [newest, oldest] = sessions
    const times = { started_at: Number, last_used_at: Number }
    t.same(Object.keys(newest ?? {}).toSorted(), ['current', 'device', 'last_used_at', 'started_at', 'tag'])
    t.match(newest, { tag: await tagOf(second, server), current: false, device: 'Firefox on Windows', ...times })
    t.match(oldest, { tag: await tagOf(first, server), current: true, ...times })
    t.notOk(oldest && 'device' in oldest, 'a User-Agent that says nothing')
    t.equal(sessions.length, 2)
    t.ok(sessions.every(({ started_at: at }) => Math.abs(Number(at) - before) < 60))
  })
}

await test('DELETE /auth/sessions/<tag> ends that session on every instance, and no list shows it any more', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, redis: true })
  const { server } = world
  const other = await world.instance()
  const [{ browser: mine }, { browser: theirs }] = [await world.user('CR1'), await world.user('CR1')]
  const [tag, ownTag] = [await tagOf(theirs, server), await tagOf(mine, server)]
  t.ok(await isLoggedIn(theirs, other.url), 'cached by the other instance')
  for (const instance of [server, other]) t.equal((await listed(mine, instance)).length, 2, 'cached, too')
  const cookie = theirs.cookieHeader(new URL(server.url), undefined)
  const sockets = ['/ws/session', '/ws/trading/CR1'].map(
    (path) => new BrowserSocket(`ws://127.0.0.1:${other.port}${path}`, { origin: server.url, cookie }),
  )
  for (const socket of sockets) await socket.opened()
  t.equal(await end(mine, server, tag), '204')
  for (const instance of [server, other]) {
    t.same(
      (await listed(mine, instance)).map((each) => each.tag),
      [ownTag],
    )
    t.notOk(await isLoggedIn(theirs, instance.url))
  }
  for (const socket of sockets) t.match(await socket.closed, { code: 4401, reason: 'session_expired' })
  t.match(sockets[0]?.texts.at(-1), '"reason":"logout"')
  t.equal(await end(mine, server, tag), '404 not_found', 'again')
  t.ok(await isLoggedIn(mine, server.url))
  const lines = server.log.filter(({ audit }) => audit === 'session_ended')
  t.equal(lines.length, 1)
  t.match(lines[0], { reason: 'logout', session: String, subject: String, client: String, reqId: String })
  t.not(lines[0]?.['session'], tag, 'the log has a name of its own')
})

await test('DELETE /auth/sessions/<tag>: 409 for the current session, from every browser that has its cookie', async (t) => {
  const { server, user } = await startWorld(t, IDENTIFIED)
  const { browser } = await user('CR1')
  const tag = await tagOf(browser, server)
  for (const each of [browser, browser.clone()]) t.equal(await end(each, server, tag), '409 current_session')
  t.ok(await isLoggedIn(browser, server.url))
})

await test('DELETE /auth/sessions/<tag>: 404 for the session of another subject and for anything that is no tag', async (t) => {
  const { server, user } = await startWorld(t, IDENTIFIED)
  const [{ browser: mine }, { browser: second }] = [await user('CR1'), await user('CR1')]
  const { browser: foreign } = await user('CR2')
  const own = await tagOf(second, server)
  const bad = [
    '%00',
    '%2e%2e',
    'a'.repeat(65),
    'a'.repeat(200),
    `${own}%20`,
    own.slice(1),
    `${own}a`,
    '%F0%9F%98%80',
    '*',
  ]
  for (const tag of [await tagOf(foreign, server), NEVER, ...bad]) {
    t.equal(await end(mine, server, tag), '404 not_found', tag)
  }
  t.equal(await end(mine, server, '%zz'), '400 bad_request')
  t.equal((await request(mine, server, '/auth/sessions/', 'DELETE')).status, 404)
  const encoded = `%${own.charCodeAt(0).toString(16)}${own.slice(1)}`
  t.equal(await end(mine, server, encoded), '404 not_found', 'no path of the server needs an escape')
  for (const each of [mine, second, foreign]) t.ok(await isLoggedIn(each, server.url))
})

await test('DELETE /auth/sessions/<tag> twice at the same moment ends the session once', async (t) => {
  const { server, instance, user } = await startWorld(t, { ...IDENTIFIED, redis: true })
  const other = await instance()
  const [{ browser: mine }, { browser: theirs }] = [await user('CR1'), await user('CR1')]
  const tag = await tagOf(theirs, server)
  const outcomes = await Promise.all([server, other, server, other].map((each) => end(mine, each, tag)))
  t.same(outcomes.toSorted(), ['204', '404 not_found', '404 not_found', '404 not_found'])
  const lines = [...server.log, ...other.log].filter(({ audit }) => audit === 'session_ended')
  t.equal(lines.length, 1)
})

await test('GET /auth/sessions shows no session that was logged out, revoked or not used', async (t) => {
  const { server, user, instance } = await startWorld(t, {
    ...IDENTIFIED,
    settings: { ...IDENTITY, SESSION_IDLE_SECONDS: '4' },
    redis: true,
  })
  const [{ browser: mine }, { browser: loggedOut }] = [await user('CR1'), await user('CR1')]
  const known = async (): Promise<{ tag: string }[]> => {
    const { sessions } = (await (await operate(server, 'GET', { subject: 'CR1' })).json()) as {
      sessions: { tag: string }[]
    }
    return sessions
  }
  const { browser: revoked } = await user('CR1')
  const { tag = '' } = (await known()).at(-1) ?? {}
  await operate(server, 'DELETE', { subject: 'CR1', tag })
  t.notOk(await isLoggedIn(revoked, server.url))
  await user('CR1')
  t.equal((await request(loggedOut, server, '/auth/logout', 'POST')).status, 204)
  const isAlone = async (): Promise<boolean> => {
    await request(mine, server, '/auth/session', 'POST')
    return (await known()).length === 1
  }
  await until(isAlone, 'the unused one ends')
  // It has no list of before.
  const fresh = await instance()
  t.match(await listed(mine, fresh), exactly({ current: true }))
  const { browser: last } = await user('CR1')
  await request(mine, server, '/auth/session', 'POST')
  t.match(await listed(last, fresh), exactly({ current: true }, { current: false }), 'a new session causes a new list')
  await logOut(mine, server.url, '?everywhere=true')
  t.equal((await request(last, fresh, '/auth/sessions')).status, 401)
})

await test('GET and DELETE /auth/sessions are no use of the session', async (t) => {
  const { server, storeClient, user } = await startWorld(t, { ...IDENTIFIED, redis: true })
  const redis = await storeClient()
  const { browser } = await user('CR1')
  const [key = ''] = [(await redis.keys('bff:1:session:*')).find((each) => each.split(':').length === 4)]
  const ends = await redis.pExpireTime(key)
  await listed(browser, server)
  await end(browser, server, NEVER)
  t.equal(await redis.pExpireTime(key), ends)
  await request(browser, server, '/auth/session', 'POST')
  t.not(await redis.pExpireTime(key), ends, 'it was due')
})

await test('By default a subject has 100 sessions: the login after them ends the oldest', async (t) => {
  const { server, user } = await startWorld(t, IDENTIFIED)
  const browsers = []
  for (let count = 0; count < 101; count++) browsers.push((await user('CR1')).browser)
  const [oldest, second] = browsers
  const last = browsers.at(-1)
  if (!oldest || !second || !last) throw new Error('no browser')
  t.notOk(await isLoggedIn(oldest, server.url))
  t.ok(await isLoggedIn(second, server.url))
  const sessions = await listed(last, server)
  t.equal(sessions.length, 100)
  t.equal(new Set(sessions.map(({ tag }) => tag)).size, 100)
  t.match(sessions[0], { current: true })
  t.equal(sessions.at(-1)?.tag, await tagOf(second, server))
})

await test('Preflights of /auth/sessions are answered for listed origins, which may read the answers', async (t) => {
  const origin = 'http://localhost:5199'
  const { server, user } = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, FRONTEND_ORIGINS: origin } })
  const { browser } = await user('CR1')
  for (const [path, method] of [
    ['/auth/sessions', 'GET'],
    [`/auth/sessions/${NEVER}`, 'DELETE'],
  ] as const) {
    const headers = { origin, 'access-control-request-method': method, 'access-control-request-headers': 'x-csrf' }
    const preflight = await fetch(`${server.url}${path}`, { method: 'OPTIONS', headers })
    t.equal(preflight.status, 204)
    t.equal(preflight.headers.get('access-control-allow-methods'), method)
    browser.page = new URL(origin)
    const response = await request(browser, server, path, method)
    t.equal(response.headers.get('access-control-allow-origin'), origin)
    t.equal(response.headers.get('access-control-allow-credentials'), 'true')
    t.equal(response.status, method === 'GET' ? 200 : 404)
  }
})
