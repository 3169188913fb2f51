import { execFile } from 'node:child_process'
import { request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { sessionsCommand } from '../../src/ops/sessions-command.ts'
import { operate, OPS_TOKEN, IDENTITY, IDENTIFIED } from '../support/login/identity.ts'
import { COMPILED, nodeCommand } from '../support/server/settings.ts'
import { isLoggedIn, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import { twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { until } from '../support/time/until.ts'
import { startWorld, type World } from '../support/world.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

interface Listed {
  readonly sessions: readonly { tag: string; started_at: number; last_used_at?: number; client: string }[]
}

const REFUSED = /^HTTP\/1\.1 400 /

/** The response to a request whose first lines are sent unchanged, as UTF-8. */
async function rawAnswer({ opsUrl }: World<'scripted', TokenEndpoint>['server'], lines: string): Promise<string> {
  const { host, hostname, port } = new URL(opsUrl)
  const socket = connect(Number(port), hostname)
  socket.write(`${lines}Host: ${host}\r\nConnection: close\r\nAuthorization: Bearer ${OPS_TOKEN}\r\n\r\n`)
  return text(socket)
}

const list = async ({ server }: World<'scripted', TokenEndpoint>, subject: string): Promise<Listed> =>
  (await (await operate(server, 'GET', { subject })).json()) as Listed

await test('GET /sessions lists the live sessions of a subject, DELETE ends one or all, and each leaves an audit line', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, redis: true })
  const { server } = world
  const startedAt = Math.floor(Date.now() / 1000)
  const { browser: first } = await world.user('CR1')
  const { browser: second } = await world.user('CR1')
  const { browser: foreign } = await world.user('CR2')
  const { sessions } = await list(world, 'CR1')
  t.equal(sessions.length, 2)
  for (const { tag, started_at: started, last_used_at: used = NaN, client } of sessions) {
    t.ok(server.log.some(({ audit, session }) => audit === 'login' && session === tag))
    t.ok(started >= startedAt && used >= started && used <= Date.now() / 1000)
    t.equal(client, '127.0.0.1')
  }
  const [{ tag } = { tag: '' }] = sessions
  t.same(await (await operate(server, 'DELETE', { subject: 'CR1', tag })).json(), { ended: 1 })
  t.same([await isLoggedIn(first, server.url), await isLoggedIn(second, server.url)], [false, true])
  t.same(await (await operate(server, 'DELETE', { subject: 'CR1', tag })).json(), { ended: 0 }, 'it is gone')
  const answer = await operate(server, 'DELETE', { subject: 'CR1' })
  t.same(await answer.json(), { ended: 1 })
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.notOk(await isLoggedIn(second, server.url))
  t.same(await list(world, 'CR1'), { sessions: [] })
  t.ok(await isLoggedIn(foreign, server.url))
  const reqId = answer.headers.get('x-request-id')
  const revoked = server.log.findLast(({ audit }) => audit === 'sessions_revoked')
  t.match(revoked, { ended: 1, subject: /^[\w-]{10}$/, client: '127.0.0.1', reqId })
  t.match(
    server.log.findLast(({ audit }) => audit === 'session_ended'),
    { reason: 'revoked', reqId },
  )
  t.match(
    server.log.find(({ audit }) => audit === 'sessions_listed'),
    { sessions: 2, subject: revoked?.['subject'] },
  )
  const typed = 'DELETE /sessions?subject=CR2 HTTP/1.1\r\nContent-Type: application/json\r\n'
  t.match(await rawAnswer(server, typed), /\{"ended":1\}$/, 'as one with a Content-Type does')
})

await test('an address of any length that a proxy passes on is cut before it is stored with a session', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, TRUST_PROXY: '1' } })
  const { browser } = world
  const login = await world.startLogin()
  const callback = new URL(`/auth/callback?code=CR1&state=${login.state}`, world.server.url)
  browser.page = login.authorize
  const headers = {
    cookie: browser.cookieHeader(callback, login.authorize, true),
    'x-forwarded-for': 'x'.repeat(4000),
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-dest': 'document',
  }
  const response = await fetch(callback, { redirect: 'manual', headers })
  t.match(response.headers.getSetCookie().join(), /session=/)
  const { sessions } = await list(world, 'CR1')
  t.same(
    sessions.map(({ client }) => client),
    ['x'.repeat(64)],
  )
})

await test('GET /sessions and npm run sessions claim no last use where the idle limit is as late as the absolute one', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, SESSION_IDLE_SECONDS: '28800' } })
  await world.user('CR1')
  const { sessions } = await list(world, 'CR1')
  t.equal(sessions.length, 1)
  t.notOk('last_used_at' in (sessions[0] ?? {}))
  const listen = { opsHost: '127.0.0.1', opsPort: Number(new URL(world.server.opsUrl).port) }
  const lines: string[] = []
  const ops = { token: new Changeable(OPS_TOKEN), hasOperators: true }
  await sessionsCommand({ listen, ops } as never, ['list', 'CR1'], (line) => lines.push(line))
  t.match(lines[1], / {2}\S+Z {2}unknown {15}127\.0\.0\.1$/)
})

await test('/sessions needs the token, on the ops listener, and takes a subject of any characters', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const { server } = world
  const { browser } = await world.user('CR1')
  for (const token of [
    '',
    'wrong',
    `${OPS_TOKEN.slice(0, -1)}!`,
    `${OPS_TOKEN}x`,
    OPS_TOKEN.slice(1),
    'x'.repeat(8000),
  ]) {
    for (const method of ['GET', 'DELETE'] as const) {
      const answer = await operate(server, method, { subject: 'CR1' }, token)
      t.equal(answer.status, 401)
      t.equal(answer.headers.get('www-authenticate'), 'Bearer')
    }
  }
  const url = `${server.opsUrl}/sessions?subject=CR1`
  t.equal((await fetch(url)).status, 401)
  t.equal((await fetch(url, { headers: { authorization: `Basic ${OPS_TOKEN}` } })).status, 401)
  t.equal((await fetch(url, { headers: { authorization: `bearer ${OPS_TOKEN}` } })).status, 200)
  const publicly = await fetch(`${server.url}/sessions?subject=CR1`, {
    headers: { authorization: `Bearer ${OPS_TOKEN}` },
  })
  t.equal(publicly.status, 404, 'the public listener has no such path')
  const unknown = await fetch(`${server.opsUrl}/nothing`)
  t.same([unknown.status, await unknown.json()], [404, { error: 'Unknown path or method' }])
  t.ok(server.log.some(({ audit }) => audit === 'ops_refused'))
  t.notMatch(JSON.stringify(server.log), OPS_TOKEN)

  const authorization = `Bearer ${OPS_TOKEN}`
  for (const query of ['', '?', '?subject=', '?subject=a&subject=b', `?subject=${'x'.repeat(257)}`]) {
    t.equal((await fetch(`${server.opsUrl}/sessions${query}`, { headers: { authorization } })).status, 400, query)
  }
  for (const tag of ['', 'a b', 'x'.repeat(65)]) {
    t.equal((await operate(server, 'DELETE', { subject: 'CR1', tag })).status, 400, `tag ${tag}`)
  }
  t.equal((await operate(server, 'GET', { subject: 'CR1', tag: 'abcdefghij' })).status, 400)
  t.ok(await isLoggedIn(browser, server.url), 'nothing of this has ended a session')

  const odd = 'née ☃ 😀\u0000\r\n" + & # % ../?'
  world.upstream.onIdentity = (_request, response) => response.end(JSON.stringify({ data: { id: odd } }))
  await world.user('odd')
  t.equal((await list(world, odd)).sessions.length, 1)
})

await test('DELETE /sessions ends nothing unless it understands the whole request', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const { server } = world
  const { browser } = await world.user('CR1')
  world.upstream.onIdentity = (_request, response) => response.end(JSON.stringify({ data: { id: 'M\uFFFDller' } }))
  const { browser: foreign } = await world.user('any')
  const { sessions } = await list(world, 'CR1')
  const [{ tag } = { tag: '' }] = sessions
  const send = async (method: string, query: string, options: RequestInit = {}): Promise<number> => {
    const headers = { authorization: `Bearer ${OPS_TOKEN}`, ...(options.headers as Record<string, string>) }
    const answer = await fetch(`${server.opsUrl}/sessions?${query}`, { ...options, method, headers })
    t.type(((await answer.json()) as { error?: string }).error, 'string', query)
    return answer.status
  }
  const queries = [`Tag=${tag}`, `tags=${tag}`, `amp;tag=${tag}`, `=${tag}`, `tag=${tag}&tag=${tag}`, `ta%67=${tag}x`]
  for (const query of [...queries, 'tag=abc', `tag=${tag}&subject=CR1`, 'Subject=CR1', 'toString=x', 'tag']) {
    t.equal(await send('DELETE', `subject=CR1&${query}`), 400, query)
    t.equal(await send('GET', `subject=CR1&${query}`), 400, query)
  }
  t.equal(await send('GET', `subject=CR1&tag=${tag}`), 400, 'only DELETE takes a tag')
  for (const subject of ['M%FCller', 'M%ller', '%', '%C3', '%ED%A0%80', 'CR1%2']) {
    t.equal(await send('DELETE', `subject=${subject}`), 400, subject)
    t.equal(await send('GET', `subject=${subject}`), 400, subject)
  }
  const json = { 'content-type': 'application/json' }
  for (const body of [JSON.stringify({ tag }), JSON.stringify({}), '{', 'x']) {
    t.equal(await send('DELETE', 'subject=CR1', { body, headers: json }), 400, body)
    t.equal(await send('DELETE', 'subject=CR1', { body }), 400, `${body} as a text`)
  }
  const raw = (target: string, header = ''): Promise<string> => rawAnswer(server, `${target} HTTP/1.1\r\n${header}`)
  t.match(
    await raw('DELETE /sessions?subject=CR1', 'Transfer-Encoding: chunked\r\n'),
    REFUSED,
    'a body that is to come',
  )
  t.match(await raw('GET /sessions?subject=CR1', 'Content-Length: 2\r\n'), REFUSED)
  for (const target of [`#tag=${tag}?subject=CR1`, `?subject=CR1#&tag=${tag}`, '?subject=M\u00FCller', '??subject=CR1'])
    t.match(await raw(`DELETE /sessions${target}`), REFUSED, target)
  for (const each of [browser, foreign]) t.ok(await isLoggedIn(each, server.url))
  t.notOk(server.log.some(({ audit }) => audit === 'sessions_revoked'))
})

await test('GET /sessions: + is a space, as in a form, and %2B is a plus', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  world.upstream.onIdentity = (_request, response) => response.end(JSON.stringify({ data: { id: 'a b+c' } }))
  await world.user('any')
  for (const subject of ['a+b%2Bc', 'a%20b%2bc']) {
    const headers = { authorization: `Bearer ${OPS_TOKEN}` }
    const answer = await fetch(`${world.server.opsUrl}/sessions?subject=${subject}`, { headers })
    t.equal(((await answer.json()) as Listed).sessions.length, 1, subject)
  }
})

await test('With WORKERS, a worker lists and ends sessions, also when another one hangs; npm run sessions shows them', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, redis: true })
  const settings = world.settings
  const server = await twoWorkers(t, settings)
  const opsUrl = `http://127.0.0.1:${server.opsPort}`
  const odd = "O'Hara +1 %41"
  world.upstream.onIdentity = (_request, response) => response.end(JSON.stringify({ data: { id: odd } }))
  const { browser } = await world.user('odd')
  t.same(((await (await operate({ opsUrl }, 'GET', { subject: odd })).json()) as Listed).sessions.length, 1)

  const command = async (...words: string[]): Promise<{ code: number; stdout: string }> => {
    const [node, ...options] = nodeCommand()
    const env = {
      ...COMPILED,
      ...settings,
      HOST: '0.0.0.0',
      PORT: String(server.port),
      OPS_PORT: String(server.opsPort),
    }
    const run = promisify(execFile)(node, [...options, MAIN, '--sessions', ...words], { env, cwd: t.testdirName })
    return run.then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
    )
  }
  t.testdir({})
  const { stdout } = await command('list', odd)
  t.match(stdout, /^TAG +STARTED +LAST USED +CLIENT\n[\w-]{10} {2}\d{4}-\d\d-\d\dT[\d:]{8}Z .* 127\.0\.0\.1\n$/)
  const [stopped = 0] = workerPids(server)
  process.kill(stopped, 'SIGSTOP')
  t.same(await command('end', odd), { code: 0, stdout: 'Ended: 1\n' })
  process.kill(stopped, 'SIGCONT')
  t.notOk(await isLoggedIn(browser, world.server.url))
  t.same(await command('list', odd), { code: 0, stdout: 'No sessions.\n' })
  t.equal((await command('purge')).code, 64)
  await until(() => server.output().stdout.includes('"sessions_revoked"'))
  server.child.kill('SIGTERM')
  await server.exited
  const gone = await command('list', 'anyone')
  t.equal(gone.code, 69)
  t.match(gone.stdout, 'does not answer: ECONNREFUSED')
})

await test('HEAD and other methods of /sessions do nothing', async (t) => {
  const { server } = await startWorld(t, IDENTIFIED)
  for (const method of ['HEAD', 'POST', 'PUT']) {
    const outgoing = request(`${server.opsUrl}/sessions?subject=CR1`, {
      method,
      headers: { authorization: `Bearer ${OPS_TOKEN}` },
    })
    const status = new Promise((resolve) => void outgoing.on('response', (response) => resolve(response.statusCode)))
    outgoing.end()
    t.equal(await status, 404, method)
  }
})
