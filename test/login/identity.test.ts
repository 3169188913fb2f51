import type { IncomingMessage, ServerResponse } from 'node:http'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { IDENTITY, IDENTIFIED } from '../support/login/identity.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { sessionState, startLogin, tokens } from '../support/login/token-endpoint.ts'
import { ALONE } from '../support/server/settings.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { readConfig } from '../../src/config/config.ts'
import { Identity } from '../../src/sessions/identity.ts'
import { createIdentityMetrics } from '../../src/telemetry/identity-metrics.ts'
import { createLog, logTag } from '../../src/telemetry/log.ts'
import type { Admission } from '../../src/upstream/budget/admission.ts'
import { createIdentityClient } from '../../src/upstream/rest-clients.ts'
import { startWorld } from '../support/world.ts'
import { exactly } from '../support/exactly.ts'

await test('GET /auth/session and the audit line of a login say whose session it is, the line by a keyed hash', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const { browser } = await world.user('CR123')
  t.match(await sessionState(browser, world.server.url), { authenticated: true, subject: 'CR123' })
  const [request] = world.upstream.identityRequests
  t.match(request?.headers, { authorization: 'Bearer of-CR123', 'service-app-id': 'test-client' })
  t.equal(world.upstream.identityRequests.length, 1, 'upstream is asked once')
  const line = world.server.log.find(({ audit }) => audit === 'login')
  t.equal(line?.['subject'], logTag(SECRETS, 'subject:CR123'))
  t.notMatch(JSON.stringify(world.server.log), /CR123/)
  t.match(await samplesOf(world.server.opsUrl, 'bff_identity_requests_total'), new Map([['outcome="found"', 1]]))
})

await test('session_ended of a session that a new login of its browser replaced says whose it was', async (t) => {
  const { server, user } = await startWorld(t, IDENTIFIED)
  const { browser } = await user('CR123')
  await (await startLogin({ browser, server })).finish({ code: 'CR456' })
  t.match(
    server.log.filter(({ audit }) => audit === 'session_ended'),
    exactly({ reason: 'replaced', subject: logTag(SECRETS, 'subject:CR123') }),
  )
})

await test('revocation_failed says whose the token was', async (t) => {
  const { server, user } = await startWorld(t, {
    ...IDENTIFIED,
    settings: { ...IDENTITY, REVOCATION_URL: 'http://127.0.0.1:9/revoke' },
  })
  const { browser } = await user('CR123')
  browser.page = new URL(server.url)
  const logout = await browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })
  t.equal(logout.status, 204)
  const failure = () => server.log.find(({ audit }) => audit === 'revocation_failed')
  await until(() => failure() !== undefined, 'a revocation that has failed')
  t.match(failure(), { token: 'access_token', subject: logTag(SECRETS, 'subject:CR123') })
})

await test('With LOG_SUBJECT=plain audit lines have the subject as it is', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, LOG_SUBJECT: 'plain' } })
  await world.user('CR123')
  t.equal(world.server.log.find(({ audit }) => audit === 'login')?.['subject'], 'CR123')
})

await test('Without IDENTITY_PATH upstream is not asked, and nothing has a subject', async (t) => {
  const settings = { IDENTITY_PATH: '', IDENTITY_POINTER: '', OPS_TOKEN: '' }
  const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, ...settings } })
  const { browser } = await world.user('CR123')
  t.notOk('subject' in (await sessionState(browser, world.server.url)))
  t.equal(world.upstream.identityRequests.length, 0)
  t.equal((await fetch(`${world.server.opsUrl}/sessions?subject=CR123`)).status, 404)
  t.equal((await samplesOf(world.server.opsUrl, 'bff_identity_requests_total')).size, 0)
})

const json = (body: unknown) => (_request: IncomingMessage, response: ServerResponse) => answerJson(response, 200, body)
const status = (code: number) => (_request: IncomingMessage, response: ServerResponse) =>
  answerJson(response, code, { data: { id: 'CR123' } })

await test('GET /auth/callback: a login goes on without a subject when upstream names none', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const failures: Record<string, readonly [outcome: string, answer: typeof world.upstream.onIdentity]> = {
    'is refused (401)': ['refused', status(401)],
    'is refused (403)': ['refused', status(403)],
    fails: ['refused', status(500)],
    redirects: ['refused', (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end()],
    'is HTML': ['unusable', (_request, response) => response.end('<h1>Hello</h1>')],
    'is empty': ['unusable', (_request, response) => response.end()],
    'is not UTF-8': ['unusable', (_request, response) => response.end(Buffer.from('{"data":{"id":"\xff"}}', 'latin1'))],
    'has nothing there': ['unusable', json({ data: {} })],
    'has an object there': ['unusable', json({ data: { id: { id: 1 } } })],
    'has an array there': ['unusable', json({ data: { id: ['CR123'] } })],
    'has null there': ['unusable', json({ data: { id: null } })],
    'has true there': ['unusable', json({ data: { id: true } })],
    'has an empty string there': ['unusable', json({ data: { id: '' } })],
    'has 257 characters there': ['unusable', json({ data: { id: 'x'.repeat(257) } })],
    'has 10 KB there': ['unusable', json({ data: { id: 'x'.repeat(10_000) } })],
    'has a lone surrogate there': ['unusable', json('{"data":{"id":"\\ud800"}}')],
    'is too large': ['lost', json({ data: { id: 'CR123' }, more: 'x'.repeat(70_000) })],
    'is broken off': [
      'lost',
      (_request, response) => void response.writeHead(200, { 'content-length': '9' }).destroy(),
    ],
  }
  for (const [what, [outcome, answer]] of Object.entries(failures)) {
    world.upstream.onIdentity = answer
    const label = `outcome="${outcome}"`
    const before = (await samplesOf(world.server.opsUrl, 'bff_identity_requests_total')).get(label) ?? 0
    const { browser, arrival } = await world.user('CR123')
    t.equal(arrival.url.search, '', `the answer ${what}: the login succeeds`)
    const state = await sessionState(browser, world.server.url)
    t.ok(state.authenticated && !('subject' in state), `the answer ${what}: without a subject`)
    t.equal((await samplesOf(world.server.opsUrl, 'bff_identity_requests_total')).get(label), before + 1, what)
  }
  const warning = world.server.log.find(({ msg }) => msg === 'a login goes on without a subject')
  t.match(warning, { level: 40, outcome: 'refused', why: 'status 401' })
  t.notMatch(JSON.stringify(world.server.log), /CR123/)
})

await test('GET /auth/callback: a login waits three seconds at most for its subject', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const left = Promise.withResolvers<number>()
  world.upstream.onIdentity = async ({ socket }) => {
    const askedAt = performance.now()
    await nextEvent(socket, 'close')
    left.resolve(performance.now() - askedAt)
  }
  const { browser } = await world.user('CR123')
  t.ok((await sessionState(browser, world.server.url)).authenticated)
  t.ok((await left.promise) >= 2900, 'it was given nearly three seconds')
  t.match(await samplesOf(world.server.opsUrl, 'bff_identity_requests_total'), new Map([['outcome="timeout"', 1]]))
})

await test('GET /auth/callback: a login goes on without a subject when UPSTREAM_BUDGET has no call left', async (t) => {
  // Of two calls, those of logins may use 80 %, which is one.
  const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, UPSTREAM_BUDGET: '2/600' } })
  await world.user('CR1')
  const { browser, arrival } = await world.user('CR123')
  t.equal(arrival.url.search, '')
  const state = await sessionState(browser, world.server.url)
  t.ok(state.authenticated && !('subject' in state))
  t.equal(world.upstream.identityRequests.length, 1)
  const outcomes = await samplesOf(world.server.opsUrl, 'bff_identity_requests_total')
  t.equal(outcomes.get('outcome="over_budget"'), 1)
})

await test('A login waits for a budget that does not reply no longer than for upstream, and each login is a user of its own', async (t) => {
  const { upstream } = readConfig({ ...ALONE, LOG_LEVEL: 'silent' })
  const subjects: string[] = []
  const late = Promise.withResolvers<Admission>()
  const admit = (_class: unknown, subject: string): Promise<Admission> => {
    subjects.push(subject)
    return late.promise
  }
  const metrics = createIdentityMetrics(new Registry())
  const settings = { path: '/me', pointer: '/id', maxSessions: Infinity }
  const client = createIdentityClient(upstream, { admit, spread: () => 0 })
  const identity = new Identity(client, { upstream, identity: settings }, metrics)
  t.teardown(() => identity.close())
  const { log } = createLog('silent', { worker: undefined, isShared: false })
  const answers = ['one', 'another'].map((id) => identity.ask('a-token', { id, log }))
  t.same(await Promise.all(answers), [undefined, undefined])
  t.same(subjects, ['one', 'another'])
  let ended = 0
  const unsent = (): undefined => void t.fail('nothing is sent')
  late.resolve({ is: 'granted', reservation: { start: unsent, answered: unsent, end: () => void ended++ } })
  await until(() => ended === 2, 'a token that comes too late is given back')
})

await test('A subject is a string of any characters or a number, to the last digit', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, settings: { ...IDENTITY, IDENTITY_POINTER: '/a~1b/0/~0' } })
  const subjects = {
    '"née ☃ \\u0000 😀"': 'née ☃ \0 😀',
    '12': '12',
    '1.50': '1.50',
    '9007199254740993': '9007199254740993',
    '123456789012345678901': '123456789012345678901',
    [`"${'😀'.repeat(256)}"`]: '😀'.repeat(256),
  }
  for (const [text, subject] of Object.entries(subjects)) {
    world.upstream.onIdentity = json(`{"a/b":[{"~":${text}}]}`)
    const { browser } = await world.user('anyone')
    t.equal((await sessionState(browser, world.server.url))['subject'], subject)
  }
})

await test('A session keeps its subject when its token is renewed', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  world.provider.behaviour = tokens({
    access_token: 'of-CR123',
    refresh_token: 'a-refresh-token',
    expires_in: 0.001,
  })
  const { browser } = await world.user('CR123')
  browser.page = new URL(world.server.url)
  t.equal((await browser.fetch('/api/account/v1/nickname', { headers: { 'x-csrf': '1' } })).status, 200)
  t.match(
    world.server.log.find(({ audit }) => audit === 'token_refreshed'),
    {},
  )
  t.equal((await sessionState(browser, world.server.url))['subject'], 'CR123')
  t.equal(world.upstream.identityRequests.length, 1)
})
