import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { ProviderRefusal } from '../../src/oauth/grant-outcome.ts'
import { besideKey, sessionKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { REQUESTER } from '../support/sessions/subject-instance.ts'
import { sessionsAlone } from '../support/sessions/sessions-alone.ts'
import { until } from '../support/time/until.ts'

const AWAY = new StoreUnavailable('away')
const CLIENT = { ip: '203.0.113.9' }
const DUE = { tokenLifetimeMs: 3_600_000 }
const REFUSED = { is: 'refused', code: 'invalid_grant', cause: new ProviderRefusal('invalid_grant') }

await test('a request whose token is good is authorized at once, once its session has been read', async (t) => {
  const { sessions, create, calls } = sessionsAlone(t)
  const cookie = await create('id')
  const first = sessions.authorize(cookie)
  t.ok(first instanceof Promise)
  t.match(await first, { is: 'authorized', session: { id: 'id', key: sessionKey('id') } })
  t.match(sessions.authorize(cookie), { is: 'authorized', session: { id: 'id' } })
  t.strictSame(sessions.authorize(undefined), { is: 'anonymous' })
  t.strictSame(await sessions.authorize(cookie.replace('id', 'other')), { is: 'anonymous' })
  t.strictSame(calls, [])
})

await test('a call that needs no token goes on with any, and one that is repeated goes on while another is fetched', async (t) => {
  const { sessions, create, calls } = sessionsAlone(t)
  const expired = await create('expired', { ...DUE, tokenExpiresAt: Date.now() - 1 })
  t.match(await sessions.authorize(expired, 'none'), {
    is: 'authorized',
    session: { record: { accessToken: 'token' } },
  })
  t.strictSame(calls, [])
  const due = await create('due', { ...DUE, tokenExpiresAt: Date.now() + 5000 })
  t.match(await sessions.authorize(due, 'repeatable', CLIENT), { session: { record: { accessToken: 'token' } } })
  await until(() => calls.length === 1, 'another token is fetched')
  t.match(await sessions.authorize(expired, 'repeatable'), { session: { record: { accessToken: 'new' } } })
  const other = await create('other', { ...DUE, tokenExpiresAt: Date.now() + 5000 })
  t.match(await sessions.authorize(other), { session: { record: { accessToken: 'new' } } }, 'a valid one is needed')
})

await test('a session whose token the provider does not renew has ended, and one that it cannot renew now has to wait', async (t) => {
  const { sessions, create, world } = sessionsAlone(t)
  world.refresh = async () => ({ is: 'unavailable', code: 'provider_unavailable', cause: 'planted' })
  const waiting = await create('waiting', { tokenExpiresAt: Date.now() - 1 })
  t.match(await sessions.authorize(waiting), { is: 'providerDown', tag: sessions.tag(sessionKey('waiting')) })
  world.refresh = async () => REFUSED
  const ended = await create('ended', { tokenExpiresAt: Date.now() - 1 })
  t.strictSame(await sessions.authorize(ended), { is: 'ended', tag: sessions.tag(sessionKey('ended')) })
})

await test('without the store a request is not authorized, and any other fault is thrown', async (t) => {
  const { sessions, create, store } = sessionsAlone(t)
  const cookie = await create('id', { tokenExpiresAt: Date.now() - 1 })
  await sessions.read(cookie)
  store.lock = () => Promise.reject(AWAY)
  t.strictSame(await sessions.authorize(cookie), { is: 'storeDown', cause: AWAY })
  store.lock = () => Promise.reject(new TypeError('planted'))
  await t.rejects(async () => sessions.authorize(cookie), /planted/)
  store.read = () => Promise.reject(AWAY)
  t.strictSame(await sessions.authorize(await create('unread')), { is: 'storeDown', cause: AWAY })
})

await test('a refused token is replaced once, and where there is no other the session ends in the name of the call', async (t) => {
  const { sessions, create, lines, counted } = sessionsAlone(t)
  const found = await sessions.read(await create('id'))
  if (found.is !== 'live') throw new Error(found.is)
  const renewed = await sessions.renewAfterRefusal(found.session, true, REQUESTER)
  t.match(renewed, { is: 'authorized', session: { record: { accessToken: 'new' } } })
  if (renewed.is !== 'authorized') throw new Error(renewed.is)
  sessions.noteAccepted(renewed.session)
  // Also for a GET that was repeated with the new token.
  for (const mayRenew of [true, false]) {
    const again = await sessions.renewAfterRefusal(renewed.session, mayRenew, REQUESTER)
    t.match(again, { is: 'justRenewed', tag: found.session.tag, retryAfterMs: Number })
  }
  const other = await sessions.read(await create('other'))
  if (other.is !== 'live') throw new Error(other.is)
  lines.length = counted.length = 0
  t.strictSame(await sessions.renewAfterRefusal(other.session, false, REQUESTER), {
    is: 'ended',
    tag: other.session.tag,
  })
  t.strictSame(counted, ['refused'])
  const line = { audit: 'session_ended', reason: 'refused', session: other.session.tag, ...REQUESTER }
  t.match(lines, [['info', line]])
})

await test('the end of a session is counted and logged once, and only a logout revokes its tokens', async (t) => {
  const { sessions, create, calls, lines, counted, world, store } = sessionsAlone(t)
  world.revoke = async () => []
  for (const reason of ['logout', 'replaced', 'revoked'] as const) {
    calls.length = lines.length = counted.length = 0
    await create(reason, { subject: 'ada' })
    const key = sessionKey(reason)
    const by = { requester: REQUESTER, id: reason }
    t.equal(await sessions.end(key, reason, by), true)
    await turn()
    t.strictSame(counted, [reason])
    const line = { audit: 'session_ended', reason, session: sessions.tag(key), ...REQUESTER }
    t.match(lines, [['info', { ...line, subject: sessions.subjectTag('ada') }]])
    t.equal(calls.length, reason === 'logout' ? 1 : 0)
    t.equal(await sessions.end(key, reason, by), false, 'it has ended')
    t.strictSame(counted, [reason])
  }
  await create('id')
  await sessions.end(sessionKey('id'), 'logout')
  t.strictSame(calls, [], 'without its id its tokens are not known')
  Object.assign(store, { isReplicated: async () => false })
  counted.length = 0
  await create('unreplicated')
  t.match(await sessions.endById('unreplicated', 'logout', true, REQUESTER), { accessToken: 'token' })
  t.strictSame(counted, ['logout', 'unreplicated'])
})

/** The timers that keep the process alive. Connections of other tests may close meanwhile. */
const timers = (): number => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length

await test('what an end leaves in the store goes once its line has had the time to be written, and no process waits for that', async (t) => {
  const { sessions, create, store } = sessionsAlone(t)
  const removed: string[] = []
  const removeIf = store.removeIf.bind(store)
  store.removeIf = async (key, text) => (removed.push(key), removeIf(key, text))
  await create('id')
  const before = timers()
  await sessions.end(sessionKey('id'), 'revoked')
  await turn()
  t.strictSame(removed, [], 'not yet')
  t.ok(timers() <= before, 'it keeps no process alive')
  const awake = setInterval(() => undefined, 1000)
  await until(() => removed.length === 1)
  clearInterval(awake)
})

await test('sessions close once the store knows of what they have recorded', async (t) => {
  const { sessions, create, store } = sessionsAlone(t)
  await create('id')
  await sessions.end(sessionKey('id'), 'revoked')
  const left = async () => store.readUntracked(besideKey(sessionKey('id'), 'left'))
  t.ok(await left())
  const awake = setInterval(() => undefined, 1000)
  await sessions.close()
  clearInterval(awake)
  t.equal(await left(), undefined)
})

await test('a session that was read earlier is authorized as it is now', async (t) => {
  const { sessions, create, elsewhere } = sessionsAlone(t)
  const cookie = await create('id')
  const found = await sessions.read(cookie)
  if (found.is !== 'live') throw new Error(found.is)
  t.equal(sessions.isCurrent(found.session), true)
  t.match(await sessions.reread(found.session), { is: 'live', session: { id: 'id' } })
  t.match(await sessions.reauthorize(found.session), { is: 'authorized', session: { id: 'id' } })
  await elsewhere.end(found.session.key, 'logout')
  t.equal(sessions.isCurrent(found.session), false)
  t.strictSame(await sessions.reauthorize(found.session), { is: 'anonymous' })
})

await test('the use of a session moves its idle limit, and a page is shown that', async (t) => {
  const { sessions, create, pass } = sessionsAlone(t)
  const cookie = await create('id')
  const shown = (session: Parameters<typeof sessions.state>[0]): unknown => Object(sessions.state(session))
  const before = await sessions.read(cookie)
  pass(300_000)
  const after = await sessions.extend(cookie)
  if (before.is !== 'live' || after.is !== 'live') throw new Error('it is over')
  t.equal(after.session.idleEndsAt - before.session.idleEndsAt, 300_000)
  const shownEnd = Math.floor((after.session.idleEndsAt - 60_000) / 1000)
  t.match(shown(after.session), { authenticated: true, idle_expires_at: shownEnd }, 'a step early')
  t.match(shown(undefined), { authenticated: false })
})

await test('a watch is told of the end of its session, which may be asked for', async (t) => {
  const { sessions, create, elsewhere } = sessionsAlone(t)
  const found = await sessions.read(await create('id'))
  if (found.is !== 'live') throw new Error(found.is)
  const ends: string[] = []
  const stop = sessions.watch(found.session, { isUse: false, onEnd: (reason) => ends.push(`stopped ${reason}`) })
  sessions.watch(found.session, { isUse: false, onEnd: (reason) => ends.push(reason) })
  stop()
  t.equal(await sessions.confirm(found.session), true)
  t.strictSame(ends, [])
  await elsewhere.end(found.session.key, 'revoked')
  t.equal(await sessions.confirm(found.session), true)
  t.strictSame(ends, ['revoked'])
})

await test('figures tell what the cache of sessions has, and what it was asked', async (t) => {
  const { sessions, create, nearCache } = sessionsAlone(t)
  const cookie = await create('id')
  const before = nearCache()
  await sessions.authorize(cookie)
  const after = nearCache()
  t.notSame(after, before)
  t.ok(Object.values(after).every((figure) => typeof figure === 'number'))
})
