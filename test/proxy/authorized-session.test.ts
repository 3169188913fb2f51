import type { FastifyRequest } from 'fastify'
import { test } from 'tap'
import { authorizedSession, liveSession, renewedSession } from '../../src/proxy/authorized-session.ts'
import type { Authorization, Session } from '../../src/sessions/index.ts'
import { StoreUnavailable } from '../../src/store/store.ts'

const SESSION = { tag: 'own-tag', subjectTag: 'ada-tag' } as Session
const LOGIN = { loginUrl: 'https://bff.test/auth/login' }
const GOOD: Authorization = { is: 'authorized', session: SESSION }

/** A request of a session whose name the log has already, and sessions that a test plays. */
function requesting(found: Authorization) {
  const calls: unknown[][] = []
  const sessions = {
    authorize: async (...args: unknown[]) => (calls.push(['authorize', ...args]), found),
    renewAfterRefusal: async (...args: unknown[]) => (calls.push(['renew', ...args]), found),
  }
  const http = { publicUrl: 'https://bff.test' }
  const deps = { http, sessions } as unknown as Parameters<typeof liveSession>[0]
  const fields = { id: 'request', ip: '192.0.2.1', headers: { cookie: 'cookies' }, sessionTag: 'before' }
  const request = fields as unknown as FastifyRequest
  return { calls, deps, http, request, named: () => [request.sessionTag, request.subjectTag] }
}

await test('an authorized session is named in the log, with its subject', (t) => {
  const { request, http, named } = requesting(GOOD)
  t.equal(authorizedSession(GOOD, request, http), SESSION)
  t.strictSame(named(), ['own-tag', 'ada-tag'])
  t.end()
})

await test('any other outcome is a problem, and a session that exists is named in the log', (t) => {
  const cause = new Error('planted')
  const detail = 'The trading service refused the token, which was renewed a moment ago. Nothing was executed.'
  for (const [found, code, details, name] of [
    [{ is: 'anonymous' }, 'login_required', LOGIN, 'before'],
    [{ is: 'ended', tag: 'tag' }, 'session_expired', LOGIN, 'tag'],
    [
      { is: 'providerDown', tag: 'tag', cause, retryAfterMs: 1001 },
      'provider_unavailable',
      { cause, retryAfterSeconds: 2 },
      'tag',
    ],
    [
      { is: 'justRenewed', tag: 'tag', retryAfterMs: 1001 },
      'credential_renewed',
      { detail, retryAfterSeconds: 2 },
      'tag',
    ],
  ] as const) {
    const { request, http, named } = requesting(found)
    t.throws(() => authorizedSession(found, request, http), { code, details }, found.is)
    t.strictSame(named(), [name, undefined])
  }
  const { request, http } = requesting(GOOD)
  const away = new StoreUnavailable('away')
  t.throws(() => authorizedSession({ is: 'storeDown', cause: away }, request, http), away)
  t.end()
})

await test('a request whose session is gone meanwhile had one, so that its session has ended', async (t) => {
  const { deps, request, named, calls } = requesting({ is: 'anonymous' })
  await t.rejects(liveSession(deps, request, 'valid'), { code: 'session_expired', details: LOGIN })
  t.strictSame(named(), ['before', undefined])
  t.strictSame(calls, [['authorize', 'cookies', 'valid', request]])
  const live = requesting(GOOD)
  t.equal(await liveSession(live.deps, live.request, 'none'), SESSION)
  t.strictSame(live.calls, [['authorize', 'cookies', 'none', live.request]])
})

await test('a session whose token upstream has refused gets another one in the name of the request', async (t) => {
  for (const mayRenew of [true, false]) {
    const { deps, request, calls } = requesting(GOOD)
    const before = {} as Session
    t.equal(await renewedSession(deps, request, before, mayRenew), SESSION)
    t.strictSame(calls, [['renew', before, mayRenew, { reqId: 'request', client: '192.0.2.1' }]])
  }
  const { deps, request } = requesting({ is: 'ended', tag: 'tag' })
  await t.rejects(renewedSession(deps, request, SESSION, true), { code: 'session_expired' })
})
