import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { StoreUnavailable } from '../../src/store/store.ts'
import { until, within } from '../support/time/until.ts'
import { held, json, tokens } from '../support/login/token-endpoint.ts'
import { MINUTE, tokenWorld } from '../support/login/token-world.ts'
import { wrongClock } from '../support/time/clock-ahead.ts'

await test('a token is due for renewal a tenth of its lifetime before it expires, at most a minute', async (t) => {
  const { here, session } = await tokenWorld(t)
  t.ok(here.isGood(await session(MINUTE + 5000)))
  t.notOk(here.isGood(await session(MINUTE - 1)))
  const short = { tokenLifetimeMs: 100_000 }
  t.ok(here.isGood(await session(15_000, short)))
  t.notOk(here.isGood(await session(10_000 - 1, short)))
  const { refreshToken: _, ...record } = (await session(1)).record
  t.ok(here.isGood({ ...(await session(1)), record }), 'a token without a refresh token is never due')
})

await test('a renewal keeps the refresh token and scope that the response does not name', async (t) => {
  const { here, session, endpoint } = await tokenWorld(t)
  const old = await session(0)
  endpoint.behaviour = tokens({ access_token: 'second', expires_in: 600 })
  const renewed = await here.renewed(old)
  if (renewed.is !== 'good') return t.fail(renewed.is)
  const { record, id } = renewed.session
  t.match(record, { accessToken: 'second', refreshToken: 'refresh-1', scope: 'trade', loginKey: 'login' })
  t.equal(record.endsAt, old.record.endsAt)
  t.equal(record.tokenLifetimeMs > 595_000 && record.tokenLifetimeMs <= 600_000, true)
  t.equal(id, old.id)

  endpoint.behaviour = tokens({ access_token: 'third', refresh_token: 'refresh-2', scope: 'trade read' })
  const again = await here.afterRefusal(renewed.session, true)
  if (again.is !== 'good') return t.fail(again.is)
  t.match(again.session.record, { accessToken: 'third', refreshToken: 'refresh-2', scope: 'trade read' })
  t.same(
    endpoint.forms.map((form) => form.get('refresh_token')),
    ['refresh-1', 'refresh-1'],
  )
})

await test('a request with an old token gets the new one without another refresh', async (t) => {
  const { here, there, session, endpoint } = await tokenWorld(t)
  const old = await session(0)
  endpoint.behaviour = tokens({ access_token: 'second' })
  await here.renewed(old)
  for (const late of [await there.renewed(old), await there.afterRefusal(old, true), await here.renewed(old)]) {
    t.equal(late.is === 'good' && late.session.record.accessToken, 'second')
  }
  t.equal(endpoint.forms.length, 1)
})

await test('other instances wait for the one that refreshes', async (t) => {
  const { here, there, session, endpoint } = await tokenWorld(t)
  const old = await session(0)
  const waiting = held(tokens({ access_token: 'second' }))
  endpoint.behaviour = waiting.behaviour
  const first = here.renewed(old)
  await within(waiting.asked, 'the provider is asked')
  const others = [there.renewed(old), there.afterRefusal(old, true), here.renewed(old)]
  waiting.release()
  for (const lookup of await Promise.all([first, ...others])) {
    t.equal(lookup.is === 'good' && lookup.session.record.accessToken, 'second')
  }
  t.equal(endpoint.forms.length, 1)
})

await test('a token that is still valid is used while its renewal takes longer than a second', async (t) => {
  const { here, there, session, endpoint } = await tokenWorld(t)
  const old = await session(MINUTE / 2)
  const waiting = held(tokens({ access_token: 'second' }))
  endpoint.behaviour = waiting.behaviour
  for (const lookup of await Promise.all([here.renewed(old), there.renewed(old)])) {
    t.equal(lookup.is === 'good' && lookup.session.record.accessToken, 'first')
  }
  const renewed = here.afterRefusal(old, true)
  waiting.release()
  const lookup = await renewed
  t.equal(lookup.is === 'good' && lookup.session.record.accessToken, 'second')
  t.equal(endpoint.forms.length, 1)
})

await test('a token is renewed ahead of its end only while it outlives the wait for another one', async (t) => {
  const { here, session, store, endpoint } = await tokenWorld(t)
  for (const endsInMs of [-1, 0, 2900]) t.notOk(here.renewAhead(await session(endsInMs)))
  t.equal(endpoint.forms.length, 0)
  const old = await session(4000)
  const waiting = held()
  endpoint.behaviour = waiting.behaviour
  t.ok(here.renewAhead(old))
  await within(waiting.asked, 'the provider is asked')
  t.ok(here.renewAhead(old))
  t.equal(store.locks, 1, 'a renewal that runs is not begun again')
  waiting.release()
  const renewed = await here.renewed(old)
  t.equal(renewed.is === 'good' && renewed.session.record.accessToken, 'the-access-token')
  store.isLost = true
  t.ok(here.renewAhead(await session(4000)), 'without the store, too')
  t.equal(endpoint.forms.length, 1)
})

await test('a token is not renewed ahead of its end while its renewals pause after a failure', async (t) => {
  const { here, session, store, endpoint } = await tokenWorld(t)
  endpoint.behaviour = json('', 503)
  const old = await session(MINUTE / 2)
  t.match(await here.renewed(old), { is: 'good' })
  const { locks } = store
  t.ok(here.renewAhead(old))
  t.equal(store.locks, locks)
})

await test('an outage of the provider is hidden while the token is valid, and does not end the session afterwards', async (t) => {
  const { here, session, sessions, endpoint } = await tokenWorld(t)
  endpoint.behaviour = json('', 503)
  const valid = await session(MINUTE / 2)
  for (let count = 0; count < 3; count++) t.match(await here.renewed(valid), { is: 'good', session: { id: valid.id } })
  t.equal(endpoint.forms.length, 1, 'the provider is not asked again at once')
  const expired = await session(0)
  for (let count = 0; count < 3; count++) {
    const lookup = await here.renewed(expired)
    t.equal(lookup.is, 'providerDown')
    t.ok(lookup.is === 'providerDown' && lookup.retryAfterMs > 0)
  }
  t.equal(endpoint.forms.length, 2, 'nor after the token has expired')
  t.ok(await sessions.load(expired.id))
})

await test('without the store a token is used until it expires', async (t) => {
  const { here, session, store, endpoint } = await tokenWorld(t)
  const valid = await session(MINUTE / 2)
  const expired = await session(0)
  store.isLost = true
  t.match(await here.renewed(valid), { is: 'good', session: { id: valid.id } })
  await t.rejects(here.renewed(expired), StoreUnavailable)
  t.equal(endpoint.forms.length, 0)
})

await test('at most 64 refreshes run at the same time', async (t) => {
  const { here, session, endpoint } = await tokenWorld(t)
  const { behaviour, release } = held(tokens({ refresh_token: 'refresh-2' }))
  endpoint.behaviour = behaviour
  const expired = await Promise.all(Array.from({ length: 80 }, () => session(0)))
  const lookups = expired.map((each, at) => here.renewed(each, { ip: `192.0.2.${at}` }))
  await until(() => endpoint.forms.length === 64)
  const waited = await Promise.race(lookups.slice(64))
  t.equal(waited?.is, 'providerDown')
  release()
  const all = await Promise.all(lookups)
  t.equal(all.filter(({ is }) => is === 'good').length, 64)
  t.equal(endpoint.forms.length, 64)
})

await test('invalid_grant ends the session at once; what is said of the client, or of the request, never does', async (t) => {
  const { here, session, sessions, endpoint } = await tokenWorld(t)
  for (const error of ['invalid_client', 'invalid_request', 'unauthorized_client']) {
    const old = await session(0)
    endpoint.behaviour = json({ error }, 400)
    t.match(await here.renewed(old), { is: 'providerDown' }, error)
    t.ok(await sessions.load(old.id))
  }
  const old = await session(0)
  endpoint.behaviour = json({ error: 'invalid_grant' }, 400)
  t.match(await here.renewed(old), { is: 'ended' })
  t.equal(await sessions.load(old.id), undefined)
})

await test('two instances refresh once, even if the provider issues the same access token again', async (t) => {
  const { here, there, session, endpoint } = await tokenWorld(t)
  const old = await session(0)
  const waiting = held(tokens({ access_token: old.record.accessToken, refresh_token: 'refresh-2' }))
  endpoint.behaviour = waiting.behaviour
  const first = here.renewed(old)
  await within(waiting.asked, 'the provider is asked')
  const second = there.renewed(old)
  waiting.release()
  for (const lookup of await Promise.all([first, second, there.renewed(old)])) {
    t.equal(lookup.is === 'good' && lookup.session.record.refreshToken, 'refresh-2')
  }
  t.equal(endpoint.forms.length, 1)
})

await test('a token that upstream refuses is renewed again, if the last renewal issued the same one', async (t) => {
  const { here, there, session, endpoint } = await tokenWorld(t)
  const old = await session(0)
  endpoint.behaviour = tokens({ access_token: old.record.accessToken, refresh_token: 'refresh-2' })
  await here.renewed(old)
  endpoint.behaviour = tokens({ access_token: 'second' })
  const lookup = await there.afterRefusal(old, true)
  t.equal(lookup.is === 'good' && lookup.session.record.accessToken, 'second')
  t.same(
    endpoint.forms.map((form) => form.get('refresh_token')),
    ['refresh-1', 'refresh-2'],
  )
})

await test('a caller who joins a renewal waits for it although the time of day was set meanwhile', async (t) => {
  const { here, session, endpoint } = await tokenWorld(t)
  const old = await session(0)
  const waiting = held(tokens({ access_token: 'second' }))
  endpoint.behaviour = waiting.behaviour
  const first = here.renewed(old)
  await within(waiting.asked, 'the provider is asked')
  wrongClock(t)(3_600_000)
  const second = here.renewed(old)
  const early = await Promise.race([second, delay(20, 'waits')])
  waiting.release()
  t.equal(early, 'waits')
  for (const lookup of await Promise.all([first, second])) {
    t.equal(lookup.is === 'good' && lookup.session.record.accessToken, 'second')
  }
})

await test('a new token that upstream refuses is renewed, although the renewal before it is still waiting here', async (t) => {
  const { here, there, session, sessions, endpoint, store } = await tokenWorld(t)
  const old = await session(0)
  const renewing = held(tokens({ access_token: 'second' }))
  endpoint.behaviour = renewing.behaviour
  const first = there.renewed(old)
  await renewing.asked
  const joined = here.renewed(old)
  await until(() => store.locks >= 6, 'it looks for the new token ever more rarely')
  renewing.release()
  await first
  endpoint.behaviour = tokens({ access_token: 'third' })
  const second = await sessions.load(old.id)
  if (second === undefined) return t.fail('the session is gone')
  const lookup = await here.afterRefusal(second, true)
  t.equal(lookup.is === 'good' && lookup.session.record.accessToken, 'third')
  t.equal((await joined).is, 'good')
})
