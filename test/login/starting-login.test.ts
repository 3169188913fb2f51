import type { FastifyReply, FastifyRequest } from 'fastify'
import { test } from 'tap'
import type { RawQuery } from '../../src/http/server.ts'
import type { LoginDependencies } from '../../src/login/login-dependencies.ts'
import { recordKiB } from '../../src/login/login-record.ts'
import { failureUrl, type AuthError } from '../../src/login/return-to.ts'
import { startLogin } from '../../src/login/start-login.ts'
import { StoreUnavailable } from '../../src/store/store.ts'

const FRONTEND = 'https://page.test'
const READY = { is: 'ready', url: new URL('https://provider.test/auth') }
const AWAY = new StoreUnavailable('away')
const SIGNUP = { values: { affiliate_token: 'token' }, isComplete: true }

/** A start of a login whose parts a test plays, from an address of its own. */
function starting(ip: string) {
  const world = {
    isAllowed: true,
    start: async (): Promise<unknown> => ({
      ticket: {
        key: 'key',
        cookie: { name: 'login', value: 'value', state: 'state' },
        transaction: { verifier: 'verifier', nonce: 'nonce' },
      },
      stale: ['old', 'older'],
    }),
    authorization: READY as unknown,
    forget: async (): Promise<void> => undefined,
    openId: undefined as unknown,
  }
  const calls: unknown[][] = []
  const lines: unknown[][] = []
  const note =
    (what: string) =>
    (...args: unknown[]): void =>
      void calls.push([what, ...args])
  const deps = {
    config: { frontendUrl: FRONTEND },
    startLimit: { allows: async (...args: unknown[]) => (note('limit')(...args), world.isAllowed) },
    transactions: {
      start: (...args: unknown[]) => (note('start')(...args), world.start()),
      forget: (...args: unknown[]) => (note('forget')(...args), world.forget()),
      attributes: (lifetimeMs?: number) => ({ lifetimeMs }),
    },
    provider: {
      get openId() {
        return world.openId
      },
      authorizationUrl: async (...args: unknown[]) => (note('url')(...args), world.authorization),
    },
    sessions: { cookie: { key: (cookies: string) => `key in ${cookies}` } },
    metrics: { logins: { inc: note('count') } },
  } as unknown as LoginDependencies
  const log = Object.fromEntries(
    ['warn', 'warn', 'error'].map((level) => [level, (...args: unknown[]) => lines.push([level, ...args])]),
  )
  const reply = { setCookie: note('cookie'), redirect: note('redirect') } as unknown as FastifyReply
  const run = async (more: object = {}): Promise<void> => {
    const query = { text: 'return_to=%2Ftrade' }
    const request = { ip, id: 'request', headers: { cookie: 'cookies' }, query, log }
    const start = { deps, reply, flow: 'login', ...more } as const
    await startLogin({ ...start, request: request as unknown as FastifyRequest<{ Querystring: RawQuery }> })
  }
  const failed = (error: AuthError) => [
    'redirect',
    failureUrl(FRONTEND, error, { flow: 'login', returnTo: '/trade' }),
    303,
  ]
  return { world, calls, lines, run, failed }
}

await test('a login is stored, gets a cookie, and goes to the provider; the cookies of others that are over go', async (t) => {
  const { calls, run, lines } = starting('192.0.2.1')
  await run()
  const options = {
    flow: 'login',
    returnTo: '/trade',
    attributed: false,
    sessionKey: 'key in cookies',
    hasNonce: false,
  }
  t.strictSame(calls, [
    ['limit', '192.0.2.1', recordKiB('/trade')],
    ['start', 'cookies', options],
    ['url', { state: 'state', verifier: 'verifier', nonce: 'nonce', signup: undefined }],
    ['cookie', 'old', '', { lifetimeMs: 0 }],
    ['cookie', 'older', '', { lifetimeMs: 0 }],
    ['cookie', 'login', 'value', { lifetimeMs: undefined }],
    ['redirect', READY.url.href, 303],
  ])
  t.same(lines, [])
})

await test('a sign-up carries its attribution, and a login with OpenID Connect has a nonce', async (t) => {
  const { calls, run, world } = starting('192.0.2.2')
  world.openId = {}
  await run({ flow: 'signup', signup: SIGNUP })
  t.match(calls[1], ['start', 'cookies', { flow: 'signup', attributed: true, hasNonce: true }])
  t.match(calls[2], ['url', { signup: SIGNUP.values }])
  await run({ flow: 'signup', signup: { ...SIGNUP, isComplete: false } })
  t.match(
    calls.findLast(([what]) => what === 'start'),
    ['start', 'cookies', { attributed: false }],
  )
})

await test('a login beyond the limit is refused before anything is stored', async (t) => {
  const { calls, run, world, lines, failed } = starting('192.0.2.3')
  world.isAllowed = false
  await run()
  t.strictSame(calls.slice(1), [['count', { flow: 'login', outcome: 'rate_limited' }], failed('try_later')])
  const line = { audit: 'login_not_started', flow: 'login', reason: 'limit', error: 'try_later', client: '192.0.2.3' }
  t.match(lines, [['warn', line]])
  t.equal(lines.length, 1)
})

await test('without the store a login is refused; any other fault is thrown', async (t) => {
  const { calls, run, world, lines, failed } = starting('192.0.2.4')
  world.start = () => Promise.reject(AWAY)
  await run()
  t.strictSame(calls.slice(2), [['count', { flow: 'login', outcome: 'try_later' }], failed('try_later')])
  t.match(lines, [['warn', { reason: 'store', cause: AWAY }]])
  world.start = () => Promise.reject(new TypeError('planted'))
  await t.rejects(run(), /planted/)
})

await test('a login that the provider does not take is forgotten; a fault of this client is an error', async (t) => {
  for (const [code, level] of [
    ['provider_unavailable', 'warn'],
    ['invalid_client', 'error'],
  ] as const) {
    for (const forget of [async () => undefined, () => Promise.reject(AWAY)]) {
      const { calls, run, world, lines, failed } = starting('192.0.2.5')
      const cause = new Error('planted')
      world.authorization = { is: 'failed', code, cause }
      world.forget = forget
      await run()
      t.strictSame(calls.slice(3), [['forget', ['key']], ['count', { flow: 'login', outcome: code }], failed(code)])
      t.match(lines, [[level, { reason: 'provider', error: code, cause }]])
    }
  }
})
