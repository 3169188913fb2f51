import type { FastifyInstance } from 'fastify'
import { test, type Test } from 'tap'
import { callbackRoute, startStopwatch } from '../../src/login/callback-route.ts'
import type { LoginDependencies } from '../../src/login/login-dependencies.ts'
import { failureUrl, type AuthError } from '../../src/login/return-to.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { FRONTEND, finishing, NOW } from '../support/login/finishing.ts'

const AWAY = new StoreUnavailable('away')
const COOKIE = { name: 'login', value: 'value', state: 'state', startedAt: 5 }
const TRANSACTION = {
  flow: 'signup',
  returnTo: '/trade',
  attributed: false,
  verifier: 'verifier',
  nonce: 'nonce',
  previous: ['old', 'older'],
}
const TICKET = { key: 'key', cookie: COOKIE, transaction: TRANSACTION, sealed: 'sealed' }
const FINISHED = {
  is: 'finished',
  flow: 'login',
  returnTo: '/trade',
  session: 'session',
  cookieValue: 'id.signed',
  endsAt: NOW + 3000,
  cookieEndsAt: NOW + 5000,
}
const KNOWN = { flow: 'signup', returnTo: '/trade' } as const

const away = (): unknown => Promise.reject(AWAY)
const verify = (value: string): string | undefined => (value.endsWith('.signed') ? value.slice(0, -7) : undefined)

/** The callback route, with a fresh login unless a test says otherwise. */
async function callbacks(t: Test) {
  const { deps, world, part, now, request, reply, grant, ...seen } = finishing(t)
  Object.assign(world, {
    knows: () => true,
    otherSessions: () => new Map(),
    consume: () => ({ is: 'fresh', ticket: TICKET }),
    exchange: () => ({ is: 'granted', grant }),
    reread: () => ({ is: 'found' }),
  })
  const all = {
    ...deps,
    guard: { requireNavigation: now('navigation') },
    provider: { exchange: part('exchange') },
    sessions: {
      ...deps.sessions,
      cookie: { ...deps.sessions.cookie, verify },
      registerWriter: part('writer'),
      reread: part('reread'),
    },
    transactions: {
      ...deps.transactions,
      knows: now('knows'),
      otherSessions: part('otherSessions'),
      consume: part('consume'),
    },
  }
  const routes = new Map<string, (...args: unknown[]) => Promise<unknown>>()
  const fastify = { get: (path: string, handler: never) => routes.set(path, handler) } as unknown as FastifyInstance
  await callbackRoute(fastify, all as unknown as LoginDependencies)
  const run = async (text = 'state=state&code=code'): Promise<void> => {
    seen.calls.length = 0
    Object.assign(request, { query: { text } })
    Object.assign(Object(request).headers, { cookie: 'cookies' })
    await routes.get('/auth/callback')?.(request, reply)
  }
  const names = (): unknown[] => seen.calls.map(([what]) => what)
  return { ...seen, world, request, run, names }
}

const failed = (error: AuthError, known?: typeof KNOWN): unknown[] => [
  'redirect',
  failureUrl(FRONTEND, error, known),
  303,
]

await test('the route is opened once sessions can be created, and admits navigations only', async (t) => {
  const { calls, run, world, request } = await callbacks(t)
  t.strictSame(
    calls.map(([what]) => what),
    ['writer'],
  )
  world['navigation'] = () => {
    throw new TypeError('no navigation')
  }
  await t.rejects(run(), /no navigation/)
  t.strictSame(calls, [['navigation', request]])
})

await test('a callback exchanges its code once, with what its login has kept, and replaces the sessions of its browser', async (t) => {
  const { calls, run, world, names, has } = await callbacks(t)
  world['otherSessions'] = () =>
    new Map([
      ['new', 'new-id.signed'],
      ['older', 'older-id.signed'],
      ['newer', 'forged'],
      ['newest', undefined],
    ])
  await run()
  t.strictSame(calls.slice(1, 5), [
    ['knows', 'cookies', 'state'],
    ['otherSessions', 'cookies', 'state'],
    ['consume', 'cookies', 'state'],
    ['exchange', 'state=state&code=code', { state: 'state', verifier: 'verifier', nonce: 'nonce', startedAt: 5 }],
  ])
  t.strictSame(
    has('endReplaced').map(([, session, by]) => [session, Object(by).id]),
    [
      ['old', undefined],
      ['older', 'older-id'],
      ['new', 'new-id'],
      ['newer', undefined],
      ['newest', undefined],
    ],
  )
  t.strictSame(names().slice(-5), ['cookie', 'signup', 'session', 'count', 'redirect'])
  t.strictSame(calls.at(-1), ['redirect', `${FRONTEND}/trade`, 303])
  const age = has('mayLive')[0]?.[2] as () => number
  t.ok(age() >= 0 && age() < 60_000)
})

await test('a callback without exactly one state, or of another browser, costs no look into the store', async (t) => {
  const { run, world, names, calls } = await callbacks(t)
  for (const [query, error] of [
    ['', 'state_mismatch'],
    ['code=code', 'state_mismatch'],
    ['state=state&state=other', 'state_mismatch'],
    ['state=state&state=state&error=access_denied', 'state_mismatch'],
    ['error=access_denied', 'access_denied'],
    ['error=access_denied&error=server_error', 'login_failed'],
    ['error=server_error', 'provider_unavailable'],
  ] as const) {
    await run(query)
    t.strictSame(names(), ['navigation', 'count', 'redirect'], query)
    t.strictSame(calls.at(-1), failed(error))
  }
  world['knows'] = () => false
  await run()
  t.strictSame(names(), ['navigation', 'knows', 'count', 'redirect'])
  t.strictSame(calls.at(-1), failed('state_mismatch'))
})

await test('an error with a state goes on to its login, which the provider has refused', async (t) => {
  const { run, has } = await callbacks(t)
  await run('state=state&error=access_denied')
  t.match(has('exchange'), [['exchange', 'state=state&error=access_denied']])
})

await test('a login that is unknown, or whose process has died, exchanges no code', async (t) => {
  const { run, world, has, calls } = await callbacks(t)
  world['consume'] = () => ({ is: 'unknown' })
  await run()
  t.strictSame(calls.at(-1), failed('state_mismatch'))
  world['consume'] = () => ({ is: 'abandoned', ...KNOWN })
  await run()
  t.strictSame(calls.at(-1), failed('login_failed', KNOWN))
  t.strictSame([has('exchange'), has('settle')], [[], []])
})

await test('a failure before the login is known, and one while its code is exchanged, end with a redirect', async (t) => {
  const { run, world, has, calls, lines } = await callbacks(t)
  world['otherSessions'] = away
  await run()
  t.strictSame([calls.at(-1), has('settle')], [failed('try_later'), []])
  for (const step of ['exchange', 'save']) {
    const login = await callbacks(t)
    login.world[step] = away
    await login.run()
    t.strictSame(login.calls.at(-1), failed('try_later', KNOWN), step)
    t.match(login.has('settle'), [['settle', { key: 'key' }, { is: 'failed', error: 'try_later', ...KNOWN }]])
  }
  world['otherSessions'] = () => new Map()
  lines.length = 0
  world['exchange'] = () => Promise.reject(new TypeError('planted'))
  await run()
  t.strictSame(calls.at(-1), failed('login_failed', KNOWN))
  t.match(lines, [['error', { audit: 'login_failed', err: /planted/ }]])
})

await test('what the provider refuses, or cannot answer now, is kept for repeated callbacks', async (t) => {
  const { run, world, has, calls, lines } = await callbacks(t)
  for (const [is, code] of [
    ['refused', 'invalid_grant'],
    ['unavailable', 'provider_unavailable'],
  ] as const) {
    const cause = new Error('planted')
    world['exchange'] = () => ({ is, code, cause })
    await run()
    t.strictSame(calls.at(-1), failed(code, KNOWN))
    t.match(has('settle'), [['settle', { key: 'key' }, { is: 'failed', error: code }]])
    t.match(lines.at(-1), ['warn', { error: code, cause }])
  }
})

await test('a repeated callback shows the outcome of the first; its cookies only if it has waited for it', async (t) => {
  const { run, world, has, calls } = await callbacks(t)
  const cookie = { ...COOKIE, name: 'login-1' }
  world['consume'] = () => ({
    is: 'replayed',
    outcome: { is: 'failed', error: 'invalid_grant', ...KNOWN },
    waited: true,
    cookie,
  })
  await run()
  t.strictSame([calls.at(-1), has('cookie')], [failed('invalid_grant', KNOWN), []])
  let waited = false
  let outcome = FINISHED
  world['consume'] = () => ({ is: 'replayed', outcome, waited, cookie })
  const home = ['redirect', `${FRONTEND}/trade`, 303]
  await run()
  t.strictSame([calls.at(-1), has('cookie'), has('reread')], [home, [], []])
  waited = true
  await run()
  t.strictSame(has('reread'), [['reread', { id: 'id' }]])
  t.strictSame(has('cookie'), [
    ['cookie', 'session', 'id.signed', { lifetimeMs: 5000 }],
    ['cookie', 'login-1', 'value.f', { loginMs: 3000 }],
  ])
  t.strictSame([calls.at(-1), has('exchange')], [home, []])
  world['reread'] = () => ({ is: 'storeDown' })
  await run()
  t.equal(has('cookie').length, 2, 'it may still live')
  world['reread'] = () => ({ is: 'none' })
  await run()
  t.strictSame([calls.at(-1), has('cookie')], [home, []])
  outcome = { ...FINISHED, cookieValue: 'forged' }
  world['reread'] = () => ({ is: 'found' })
  await run()
  t.strictSame([calls.at(-1), has('cookie'), has('reread')], [home, [], []])
})

await test('a stopwatch goes by the clock that says more', (t) => {
  const clocks = { monotonic: 100, timeOfDay: 5000 }
  t.intercept(performance, 'now', { value: () => clocks.monotonic })
  t.intercept(Date, 'now', { value: () => clocks.timeOfDay })
  const age = startStopwatch()
  t.equal(age(), 0)
  Object.assign(clocks, { monotonic: 107, timeOfDay: 5003 })
  t.equal(age(), 7)
  clocks.timeOfDay = 5020
  t.equal(age(), 20)
  clocks.timeOfDay = 1
  t.equal(age(), 7)
  t.end()
})
