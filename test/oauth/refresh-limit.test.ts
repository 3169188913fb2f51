import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { Provider } from '../../src/oauth/provider.ts'
import { RefreshLimit } from '../../src/oauth/refresh-limit.ts'
import { json, tokenEndpoint, tokens } from '../support/login/token-endpoint.ts'
import { ALONE } from '../support/server/settings.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'

const THREE = ['alice', 'bob', 'carol']

await test('RefreshLimit pauses all once three users were limited within ten seconds, but for one try a second', (t) => {
  const setAhead = clockAhead(t)
  const limit = new RefreshLimit()
  for (let times = 0; times < 9; times++) limit.refused('alice', 60_000)
  limit.refused('bob', 60_000)
  t.equal(limit.take('dave'), 0, 'two users are not enough, however often')
  limit.refused('carol', 60_000)
  t.equal(limit.take('dave'), 0, 'one may try')
  for (const user of ['dave', 'eve']) t.ok(limit.take(user) > 0 && limit.take(user) <= 1000, `${user} waits`)
  setAhead(1000)
  for (const user of THREE) t.ok(limit.take(user) > 50_000, `${user} is limited, and does not try`)
  t.equal(limit.take('eve'), 0)
  t.ok(limit.take('dave') > 0)
  t.end()
})

await test('RefreshLimit ends its pause when the provider answers otherwise, and then counts from the start', (t) => {
  const setAhead = clockAhead(t)
  const limit = new RefreshLimit()
  for (const user of THREE) limit.refused(user, 60_000)
  limit.take('dave')
  limit.lift()
  setAhead(1000)
  for (const user of ['dave', 'eve', ...THREE]) t.equal(limit.take(user), 0)
  for (const user of ['dave', 'eve']) limit.refused(user, 1000)
  t.equal(limit.take('frank'), 0)
  limit.refused('alice', 1000)
  t.equal(limit.take('frank'), 0)
  t.ok(limit.take('frank') > 0)
  t.end()
})

await test('RefreshLimit: 429s that come slowly pause nobody, and a limited user may try when its own wait is over', (t) => {
  const setAhead = clockAhead(t)
  const limit = new RefreshLimit()
  for (const user of THREE) {
    limit.refused(user, 1000)
    setAhead(5001)
  }
  t.equal(limit.take('dave'), 0)
  t.equal(limit.take('eve'), 0)
  for (const user of THREE) limit.refused(user, 2000)
  t.ok(limit.take('alice') > 1000)
  setAhead(2000)
  t.equal(limit.take('alice'), 0, 'or nobody might ever try where all are limited')
  t.end()
})

await test('RefreshLimit remembers ten thousand users', (t) => {
  const limit = new RefreshLimit()
  for (let count = 0; count < 10_001; count++) limit.refused(`user-${count}`, 60_000)
  t.equal(limit.take('user-0'), 0, 'the one who was limited longest ago is forgotten')
  t.ok(limit.take('user-1') > 0)
  t.end()
})

const LOGIN = { state: 'the-state', verifier: 'v'.repeat(43), nonce: undefined, startedAt: Date.now() }

for (const [what, behaviour, ask] of [
  ['a login', tokens({}), (provider: Provider) => provider.exchange('code=x&state=the-state', LOGIN)],
  ['a refresh that succeeds', tokens({}), (provider: Provider) => provider.refresh('a-token', 'eve')],
  ['a refusal', json({ error: 'invalid_grant' }, 400), (provider: Provider) => provider.refresh('a-token', 'eve')],
] as const) {
  await test(`while the provider limits refreshes, ${what} shows that it limits them no more`, async (t) => {
    const setAhead = clockAhead(t)
    const endpoint = await tokenEndpoint(t)
    const provider = new Provider(readConfig({ ...ALONE, AUTH_URL: endpoint.url }).oauth)
    t.teardown(() => provider.close())
    endpoint.behaviour = json('', 429, { 'retry-after': '60' })
    // The fourth has taken the try of this second.
    for (const user of [...THREE, 'dave']) await provider.refresh('a-token', user)
    endpoint.behaviour = behaviour
    if (what !== 'a login') setAhead(1000)
    await ask(provider)
    endpoint.behaviour = tokens({})
    t.equal((await provider.refresh('a-token', 'frank')).is, 'granted')
  })
}
