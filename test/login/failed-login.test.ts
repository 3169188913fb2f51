import { test } from 'tap'
import { failLogin, failureOf, type Callback } from '../../src/login/failed-login.ts'
import { failureUrl } from '../../src/login/return-to.ts'
import { ProviderRefusal } from '../../src/oauth/grant-outcome.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { NO_DESCRIPTOR } from '../../src/telemetry/descriptors.ts'

type Failure = Parameters<typeof failLogin>[1]

const FRONTEND = 'https://page.test'
const KNOWN = { flow: 'signup', returnTo: '/trade' } as const
const TICKET = { key: 'key', transaction: { ...KNOWN, previous: ['old'] } } as unknown as NonNullable<Failure['ticket']>
const AWAY = new StoreUnavailable('away')

/** A callback of an address of its own, and what is done and logged once it has failed. */
function failing(ip: string, text = '') {
  const calls: unknown[][] = []
  const lines: unknown[][] = []
  const world = { settle: async (): Promise<void> => undefined }
  const log = Object.fromEntries(
    ['info', 'warn', 'error'].map((level) => [level, (...args: unknown[]) => lines.push([level, ...args])]),
  )
  const callback = {
    deps: {
      config: { frontendUrl: FRONTEND },
      metrics: { logins: { inc: (labels: unknown) => calls.push(['count', labels]) } },
      transactions: { settle: async (...args: unknown[]) => (calls.push(['settle', ...args]), world.settle()) },
    },
    request: { ip, sessionTag: '', log },
    reply: { redirect: (...args: unknown[]) => calls.push(['redirect', ...args]) },
    query: new URLSearchParams(text),
    ageMs: () => 0,
  } as unknown as Callback
  const fail = async (failure: Failure): Promise<void> => {
    calls.length = lines.length = 0
    await failLogin(callback, failure)
  }
  const described = (): unknown => Object(lines[0]?.[1]).description
  return { world, calls, lines, fail, described }
}

await test('without the store a login may be tried later, and anything else is a fault of this server', (t) => {
  t.strictSame(failureOf(AWAY), { error: 'try_later', cause: AWAY })
  const cause = new TypeError('planted')
  t.strictSame(failureOf(cause), { error: 'login_failed', cause, isFault: true })
  t.end()
})

await test('a failure is logged, counted, kept for repeated callbacks, and told to the frontend', async (t) => {
  const { fail, calls, lines } = failing('192.0.2.31')
  const cause = new Error('planted')
  await fail({ error: 'invalid_grant', cause, ticket: TICKET, reason: 'ended', outcome: 'rate_limited' })
  t.strictSame(calls, [
    ['count', { flow: 'signup', outcome: 'rate_limited' }],
    ['settle', TICKET, { is: 'failed', error: 'invalid_grant', ...KNOWN, previous: ['old'] }],
    ['redirect', failureUrl(FRONTEND, 'invalid_grant', KNOWN), 303],
  ])
  const line = { audit: 'login_failed', error: 'invalid_grant', reason: 'ended', flow: 'signup', client: '192.0.2.31' }
  t.match(lines, [['warn', { ...line, cause }]])
  t.notOk('err' in Object(lines[0]?.[1]))
  t.equal(lines.length, 1)
  await fail({ error: 'access_denied', known: KNOWN })
  t.strictSame(calls, [
    ['count', { flow: 'signup', outcome: 'access_denied' }],
    ['redirect', failureUrl(FRONTEND, 'access_denied', KNOWN), 303],
  ])
  await fail({ error: 'state_mismatch' })
  t.strictSame(calls, [
    ['count', { flow: 'unknown', outcome: 'state_mismatch' }],
    ['redirect', failureUrl(FRONTEND, 'state_mismatch'), 303],
  ])
})

await test('what the operator must mend is an error', async (t) => {
  const { fail, lines } = failing('192.0.2.32')
  await fail({ error: 'invalid_client', known: KNOWN })
  t.match(lines, [['error', { audit: 'login_failed' }]])
  const cause = new TypeError('planted')
  await fail({ error: 'login_failed', cause, isFault: true })
  t.match(lines, [['error', { audit: 'login_failed', err: cause }]])
  t.notOk('cause' in Object(lines[0]?.[1]))
})

await test('a stranger fills no log: of failures without a login five are written, of each kind and network', async (t) => {
  const { fail, lines } = failing('192.0.2.33')
  const written: number[] = []
  for (let count = 0; count < 7; count++) {
    await fail({ error: 'state_mismatch' })
    written.push(lines.length)
  }
  t.strictSame(written, [1, 1, 1, 1, 1, 0, 0])
  await fail({ error: 'access_denied' })
  t.equal(lines.length, 1, 'another kind')
  for (const failure of [{ error: 'state_mismatch', known: KNOWN }, { error: 'invalid_client' }] as const) {
    for (let count = 0; count < 7; count++) {
      await fail(failure)
      t.equal(lines.length, 1, `${failure.error} is always written`)
    }
  }
})

await test('what the provider says of a failure is logged, without the code and the state of the login', async (t) => {
  const [code, state] = ['c'.repeat(8), 's'.repeat(40)]
  const text = `the code ${code} of ${state}, ${code} again`
  const query = new URLSearchParams({ code, state, error_description: text })
  const { fail, described } = failing('192.0.2.34', String(query))
  await fail({ error: 'access_denied', known: KNOWN })
  t.equal(described(), 'the code … of …, … again')
  const short = failing('192.0.2.34', 'code=of&state=1234567&error_description=of 1234567')
  await short.fail({ error: 'access_denied', known: KNOWN })
  t.equal(short.described(), 'of 1234567', 'what is so short is no secret')
  const twice = failing('192.0.2.34', `state=${state}&state=${code}&error_description=${state} ${code}`)
  await twice.fail({ error: 'access_denied', known: KNOWN })
  t.equal(twice.described(), '… …')
  const long = failing('192.0.2.34', `code=${code}&error_description=${'x'.repeat(496)}${code}`)
  await long.fail({ error: 'access_denied', known: KNOWN })
  t.equal(long.described(), `${'x'.repeat(496)}…`, 'no beginning of a secret is left')
  const silent = failing('192.0.2.34', `code=${code}&state=${state}`)
  await silent.fail({ error: 'access_denied', known: KNOWN })
  t.equal(silent.described(), undefined)
  const longer = failing('192.0.2.34', `error_description=${'x'.repeat(600)}`)
  await longer.fail({ error: 'access_denied', known: KNOWN })
  t.equal(longer.described(), 'x'.repeat(500))
})

await test('without a description in the address that of the token endpoint is logged, and of nobody else', async (t) => {
  const { fail, described } = failing('192.0.2.35')
  const cause = new ProviderRefusal('invalid_grant', 'it is used')
  await fail({ error: 'invalid_grant', known: KNOWN, cause })
  t.equal(described(), 'it is used')
  await fail({ error: 'invalid_grant', known: KNOWN, cause: Object.assign(new Error('x'), { description: 'y' }) })
  t.equal(described(), undefined)
})

await test('a login fails all the same if its outcome is not saved, or no descriptor is left, and the operator learns of both', async (t) => {
  const { fail, world, calls, lines } = failing('192.0.2.36')
  world.settle = () => Promise.reject(AWAY)
  await fail({ error: 'invalid_grant', ticket: TICKET })
  t.match(calls.at(-1), ['redirect'])
  t.match(lines[1], ['warn', { cause: AWAY }, 'the outcome of a login was not saved'])
  const cause = new Error('planted', { cause: Object.assign(new Error('open'), { code: 'EMFILE' }) })
  await fail({ error: 'provider_unavailable', known: KNOWN, cause })
  t.match(JSON.stringify(lines.slice(1)), NO_DESCRIPTOR)
})
