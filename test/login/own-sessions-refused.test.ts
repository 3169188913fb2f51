import { test } from 'tap'
import { IDENTIFIED } from '../support/login/identity.ts'
import { end, listed, request, tagOf } from '../support/login/own-sessions.ts'
import { isLoggedIn, scripted } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const NEVER = 'A'.repeat(16)

await test('GET and DELETE /auth/sessions: 401 without a session, 403 without X-CSRF, 405 for another method', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const { server } = world
  const stranger = world.browser.clone()
  for (const method of ['GET', 'DELETE']) {
    const response = await request(stranger, server, `/auth/sessions${method === 'GET' ? '' : `/${NEVER}`}`, method)
    t.equal(response.status, 401)
    t.match(await response.json(), { code: 'login_required', login_url: `${server.url}/auth/login` })
  }
  const { browser } = await world.user('CR1')
  const { browser: second } = await world.user('CR1')
  browser.page = new URL(server.url)
  const forged = await browser.fetch(`/auth/sessions/${await tagOf(second, server)}`, { method: 'DELETE' })
  t.match(await forged.json(), { status: 403, code: 'csrf_rejected' })
  t.ok(await isLoggedIn(second, server.url))
  for (const [path, method, allow] of [
    ['/auth/sessions', 'HEAD', 'GET'],
    ['/auth/sessions', 'DELETE', 'GET'],
    [`/auth/sessions/${NEVER}`, 'GET', 'DELETE'],
  ] as const) {
    const response = await request(browser, server, path, method)
    t.equal(response.status, 405, `${method} ${path}`)
    t.equal(response.headers.get('allow'), allow)
  }
})

await test('GET and DELETE /auth/sessions: 409 without a subject, whether the server asks for subjects or not', async (t) => {
  const knowing = await startWorld(t, IDENTIFIED)
  knowing.upstream.onIdentity = (_request, response) => response.writeHead(500).end()
  const { browser } = await knowing.user('CR1')
  const ignorant = await startWorld(t, { provider: scripted })
  await ignorant.logIn()
  for (const [each, there] of [
    [browser, knowing.server],
    [ignorant.browser, ignorant.server],
  ] as const) {
    t.match(await (await request(each, there, '/auth/sessions')).json(), { status: 409, code: 'subject_unknown' })
    t.equal(await end(each, there, NEVER), '409 subject_unknown')
    t.ok(await isLoggedIn(each, there.url), 'it is not logged out')
  }
})

await test('GET /auth/sessions: a subject gets ten lists a minute over all instances, then 429 with Retry-After', async (t) => {
  const { server, instance, user } = await startWorld(t, { ...IDENTIFIED, redis: true })
  const other = await instance()
  const [{ browser: first }, { browser: second }] = [await user('CR1'), await user('CR1')]
  const statuses = []
  for (let times = 0; times < 5; times++) {
    for (const [browser, there] of [
      [first, server],
      [second, other],
    ] as const)
      statuses.push((await request(browser, there, '/auth/sessions')).status)
  }
  t.same(new Set(statuses), new Set([200]))
  for (const there of [server, other, other]) {
    const refused = await request(first, there, '/auth/sessions')
    t.equal(refused.status, 429)
    t.match(await refused.json(), { code: 'rate_limited' })
    const seconds = Number(refused.headers.get('retry-after'))
    t.ok(seconds >= 1 && seconds <= 60, `${seconds} seconds`)
  }
  const { browser: foreign } = await user('CR2')
  t.equal((await listed(foreign, server)).length, 1)
  t.equal(await end(first, server, await tagOf(second, server)), '204', 'to end a session is always possible')
})

await test('GET /auth/sessions: 503 while the store is away, DELETE too, and then it works', async (t) => {
  const { server, redis, user } = await startWorld(t, { ...IDENTIFIED, redis: true })
  const [{ browser: mine }, { browser: theirs }] = [await user('CR1'), await user('CR1')]
  const tag = await tagOf(theirs, server)
  await listed(mine, server)
  redis?.process.kill('SIGSTOP')
  const refused = await request(mine, server, '/auth/sessions')
  t.match(await refused.json(), { status: 503, code: 'session_store_unavailable' })
  t.ok(refused.headers.get('retry-after'))
  t.equal(await end(mine, server, tag), '503 session_store_unavailable')
  redis?.process.kill('SIGCONT')
  let outcome = ''
  await until(async () => !(outcome = await end(mine, server, tag)).startsWith('503'))
  t.equal(outcome, '204')
  t.notOk(await isLoggedIn(theirs, server.url))
})
