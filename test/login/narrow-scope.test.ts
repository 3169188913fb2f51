import { test } from 'tap'
import { finishing } from '../support/login/finishing.ts'

const NARROW = 'the provider granted less than OAUTH_SCOPE, so some calls may be refused'

await test('a login that was granted less than it asked for is reported, and goes on', async (t) => {
  const { run, grant, lines, calls } = finishing(t)
  grant['scope'] = 'offline_access profile'
  await run()
  t.match(calls.at(-1), ['redirect', 'https://page.test/trade'])
  const narrow = (): unknown[][] => lines.filter(([level]) => level === 'warn')
  t.strictSame(narrow(), [['warn', { missing: ['trade'], count: 1 }, NARROW]])
})

await test('the same lack of scope is reported once, another one at once', async (t) => {
  const { grant, lines, deps, run, request } = finishing(t)
  const missing = async (scope: string | undefined): Promise<unknown[]> => {
    lines.length = 0
    grant['scope'] = scope
    const session = {
      sessionId: 'id',
      encryptedSessionId: 'id.signed',
      set: () => undefined,
      save: async () => undefined,
    }
    await run({ request: { ...request, session } })
    return lines.filter(([level]) => level === 'warn').map(([, fields]) => Object(fields).missing)
  }
  deps.config.scope = 'trade read offline_access'
  t.strictSame(await missing('trade'), [['read']])
  t.strictSame(await missing('trade'), [])
  t.strictSame(await missing(''), [['trade', 'read']])
  t.strictSame(await missing('read trade'), [], 'a refresh token stands for offline_access')
  t.strictSame(await missing(undefined), [], 'no scope is the requested one')
  delete grant['refreshToken']
  t.strictSame(await missing('read trade'), [['offline_access']])
  t.strictSame(await missing('trade'), [['read', 'offline_access']])
  t.strictSame(await missing(undefined), [])
  deps.config.scope = 'a b ab'
  t.strictSame(await missing('ab'), [['a', 'b']])
  t.strictSame(await missing('a b'), [['ab']], 'not the same as both')
})

await test('a provider that names no lifetime of its tokens is reported', async (t) => {
  const { run, grant, lines } = finishing(t)
  grant['lifetimeGuessed'] = true
  await run()
  t.match(lines[0], ['warn', { count: 1 }, 'the provider named no usable expires_in'])
})
