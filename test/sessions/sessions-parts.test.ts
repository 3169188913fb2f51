import cookies from '@fastify/cookie'
import Fastify from 'fastify'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { refusalSource, saveNewSession } from '../../src/sessions/index.ts'
import { ALONE } from '../support/server/settings.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { sessionsAlone } from '../support/sessions/sessions-alone.ts'
import { REQUESTER } from '../support/sessions/subject-instance.ts'
import { until } from '../support/time/until.ts'

const CLIENT = { ip: '203.0.113.9' }

await test('sessions have subjects where upstream or the provider tells them, and nothing of that is loaded elsewhere', async (t) => {
  const { sessions, create, store, secrets, envelope } = sessionsAlone(t)
  const deps = { store, envelope, budget: undefined, registry: new Registry() }
  for (const [more, isKnown] of [
    [{}, false],
    [{ IDENTITY_PATH: '/me', IDENTITY_POINTER: '/id' }, true],
    [{ OIDC: 'true', OAUTH_SCOPE: 'openid', DISCOVERY: 'true' }, true],
  ] as const) {
    const subjects = await sessions.createSubjects({ ...readConfig({ ...ALONE, ...more }), secrets }, deps)
    t.equal(subjects !== undefined, isKnown)
    if (subjects === undefined) continue
    t.teardown(() => subjects.identity?.close())
    const id = Object.keys(more).join()
    await create(id)
    await subjects.enlist({ subject: id, id, endsAt: Date.now() + 60_000, client: REQUESTER.client })
    t.equal((await subjects.list(id)).length, 1)
    t.equal(await subjects.endAll(id, { reason: 'revoked', requester: REQUESTER }), 1)
    t.equal((await subjects.list(id)).length, 0)
  }
})

await test('with OpenID Connect a session of before, which has no identity, counts no more', async (t) => {
  const { sessions, create } = sessionsAlone(t, { hasOpenId: true })
  t.strictSame(await sessions.authorize(await create('before')), { is: 'anonymous' })
  const oidc = { iss: 'https://issuer.test', sub: 'ada', issuedAt: 1 }
  t.match(await sessions.authorize(await create('since', { oidc })), { is: 'authorized' })
})

await test('a trading socket keeps its session in use and its token good', async (t) => {
  const { sessions, create, elsewhere, calls, pass } = sessionsAlone(t)
  const found = await sessions.read(await create('id', { tokenExpiresAt: Date.now() - 1 }))
  if (found.is !== 'live') throw new Error(found.is)
  const { session } = found
  t.teardown(sessions.watch(session, { isUse: true, client: CLIENT, onEnd: (reason) => t.fail(reason) }))
  await until(() => calls.length > 0, 'the token is renewed without a call')
  t.match(calls, [['refresh', 'refresh', refusalSource(session, CLIENT.ip)]])
  pass(300_000)
  t.equal(await sessions.confirm(session), true)
  const later = await elsewhere.load('id')
  t.ok(later && later.idleEndsAt > session.idleEndsAt)
})

await test('a login saves its session by the routes that may, and every part of the server knows it', async (t) => {
  const { sessions } = sessionsAlone(t)
  const fastify = Fastify()
  t.teardown(() => fastify.close())
  await fastify.register(cookies)
  await fastify.register(async (scope) => {
    await sessions.registerWriter(scope)
    scope.get('/', async (request) => saveNewSession(request, sessionRecord()))
  })
  const { body } = await fastify.inject('/')
  t.match(await sessions.authorize(`${sessions.cookie.name}=${body}`), { is: 'authorized' })
})
