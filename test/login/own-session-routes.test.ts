import Fastify, { type FastifyRequest } from 'fastify'
import { test, type Test } from 'tap'
import type { LoginDependencies } from '../../src/login/login-dependencies.ts'
import { ownSessionRoutes, sessionOf } from '../../src/login/own-session-routes.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { followStoreClock } from '../../src/time/store-time.ts'
import { played } from '../support/login/played.ts'
import { OWN } from '../support/login/session-routes-of.ts'

const NOW = 1_700_000_000_999
const TAG = 'A'.repeat(16)
const ME = { id: 'own', key: 'own-key', subject: 'ada' }

/** The routes over parts that a test plays, and what they throw. */
async function routes(t: Test, without: Readonly<Record<string, undefined>> = {}) {
  t.teardown(followStoreClock(() => NOW))
  const world: Record<string, (...args: unknown[]) => unknown> = {
    read: () => ({ is: 'found', session: OWN }),
    list: () => ({ is: 'listed', sessions: [] }),
    end: () => ({ is: 'ended' }),
  }
  const { calls, now, part } = played(world)
  const deps = {
    publicUrl: 'https://bff.test',
    guard: {
      addPreflight: (_fastify: unknown, ...rest: unknown[]) => now('preflight')(...rest),
      requireScript: now('script'),
    },
    sessions: { read: part('read') },
    subjects: { own: { list: part('list'), end: part('end') } },
    ...without,
  }
  const fastify = Fastify()
  t.teardown(() => fastify.close())
  const [errors, tags]: [unknown[], unknown[]] = [[], []]
  fastify.setErrorHandler((error, _request, reply) => (errors.push(error), reply.code(500).send('failed')))
  fastify.addHook('onResponse', async ({ sessionTag, subjectTag }) => void tags.push([sessionTag, subjectTag]))
  await fastify.register(async (scope) => ownSessionRoutes(scope, deps as unknown as LoginDependencies))
  await fastify.ready()
  const opened = calls.splice(0)
  const ask = async (method: 'GET' | 'DELETE', tag?: string) => {
    for (const each of [calls, errors, tags]) each.length = 0
    const url = `/auth/sessions${tag === undefined ? '' : `/${tag}`}`
    const { statusCode, body } = await fastify.inject({ method, url, headers: { cookie: 'cookies' } })
    return { status: statusCode, body }
  }
  const has = (what: string): unknown[][] => calls.filter(([each]) => each === what)
  return { opened, world, calls, errors, tags, ask, has }
}

await test('pages of listed origins may ask for the list, and end one of its sessions', async (t) => {
  const { opened } = await routes(t)
  t.strictSame(opened, [
    ['preflight', '/auth/sessions', ['GET']],
    ['preflight', '/auth/sessions/:tag', ['DELETE']],
  ])
})

await test('a list has the times in whole seconds, and what is not known is left out', async (t) => {
  const { ask, world, calls, tags } = await routes(t)
  const device = 'Firefox on Linux'
  const sessions = [
    { tag: 'one', startedAt: 1999, lastUsedAt: 5000, isCurrent: true, device },
    { tag: 'two', startedAt: 2000, lastUsedAt: undefined, isCurrent: false, device: undefined },
  ]
  world['list'] = () => ({ is: 'listed', sessions })
  const { status, body } = await ask('GET')
  t.equal(status, 200)
  t.strictSame(JSON.parse(body), {
    sessions: [
      { tag: 'one', started_at: 1, last_used_at: 5, current: true, device },
      { tag: 'two', started_at: 2, current: false },
    ],
    now: 1_700_000_000,
  })
  t.strictSame(calls, [
    ['read', 'cookies'],
    ['list', ME],
  ])
  t.strictSame(tags, [['own-tag', 'ada-tag']], 'the log names the session')
})

await test('a session ends by its tag, in the name of the request, and only for scripts', async (t) => {
  const { ask, calls, has, world, errors } = await routes(t)
  t.strictSame(await ask('DELETE', TAG), { status: 204, body: '' })
  t.match(calls, [
    ['script', Object],
    ['read', 'cookies'],
    ['end', ME, TAG, { reason: 'logout', requester: { reqId: String, client: '127.0.0.1' } }],
  ])
  world['script'] = () => {
    throw new Error('planted')
  }
  await ask('DELETE', TAG)
  t.match(errors, [/planted/])
  t.strictSame([has('read'), has('end')], [[], []])
})

await test('a session that is the own one, unknown or no tag does not end, and is told apart', async (t) => {
  const { ask, errors, has, world } = await routes(t)
  for (const [is, code] of [
    ['current', 'current_session'],
    ['unknown', 'not_found'],
  ] as const) {
    world['end'] = () => ({ is })
    await ask('DELETE', TAG)
    t.match(errors, [{ code }])
  }
  for (const tag of ['a'.repeat(65), 'a.b', '%20']) {
    await ask('DELETE', tag)
    t.match(errors, [{ code: 'not_found' }], tag)
    t.equal(has('end').length, 0, 'nobody is asked for it')
  }
})

await test('who asks too often is told when to ask again, in seconds that have begun', async (t) => {
  const { ask, errors, world } = await routes(t)
  world['list'] = world['end'] = () => ({ is: 'limited', waitMs: 2001 })
  for (const [method, tag] of [['GET'], ['DELETE', TAG]] as const) {
    await ask(method, tag)
    t.match(errors, [{ code: 'rate_limited', details: { retryAfterSeconds: 3 } }])
  }
})

await test('without a session, a subject, or a server that knows subjects, there is no list', async (t) => {
  const { ask, errors, world, calls } = await routes(t)
  world['read'] = () => ({ is: 'none' })
  await ask('GET')
  t.match(errors, [{ code: 'login_required', details: { loginUrl: 'https://bff.test/auth/login' } }])
  const cause = new StoreUnavailable('away')
  world['read'] = () => ({ is: 'storeDown', cause })
  await ask('DELETE', TAG)
  t.equal(errors[0], cause)
  world['read'] = () => ({ is: 'found', session: { ...OWN, record: {} } })
  await ask('GET')
  t.match(errors, [{ code: 'subject_unknown' }])
  t.strictSame(calls, [['read', 'cookies']])
  const ignorant = await routes(t, { subjects: undefined })
  await ignorant.ask('GET')
  t.match(ignorant.errors, [{ code: 'subject_unknown' }])
})

await test('a request without a session is named by none in the log', (t) => {
  const request = { sessionTag: '', subjectTag: undefined } as unknown as FastifyRequest
  t.equal(sessionOf({ is: 'none' }, request), undefined)
  t.match(request, { sessionTag: '', subjectTag: undefined })
  t.end()
})
