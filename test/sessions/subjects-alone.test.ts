import { setImmediate } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { Changeable } from '../../src/config/changing.ts'
import { nameOf, type LoginIdentity } from '../../src/oauth/login-identity.ts'
import type { LogoutToken } from '../../src/oauth/logout-tokens.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { SessionRepository } from '../../src/sessions/repository.ts'
import { pageTag, type Session } from '../../src/sessions/session.ts'
import type { Cause, ListedSession } from '../../src/sessions/subject-index.ts'
import { Subjects } from '../../src/sessions/subjects.ts'
import { providerSessionKey, sessionKey, subjectKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { ENDED_MS } from '../../src/store/session-index.ts'
import { ALONE, logNames } from '../support/server/settings.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { CR1, heldSubjects, IDENTITY, PLACE, TWIN, type World } from '../support/sessions/held-subjects.ts'
import { REQUESTER } from '../support/sessions/subject-instance.ts'

const BY: Cause = { reason: 'logout', requester: REQUESTER }
const USER_AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const { sid: _sid, ...sidless } = IDENTITY
const keysOf = (sessions: unknown): string[] => (sessions as ListedSession[]).map(({ key }) => key)

await test('a session is entered with what a page and an operator may see of it', async (t) => {
  const { subjects, calls } = heldSubjects()
  const before = Date.now()
  t.strictSame(await subjects.enlist({ ...CR1, userAgent: USER_AGENT }), {
    subject: 'CR1',
    place: PLACE,
    twin: undefined,
    count: 7,
    issuedAt: undefined,
  })
  const [, subject, place, session, endsAt] = calls[0] ?? []
  t.same([subject, place, endsAt], ['CR1', PLACE, CR1.endsAt])
  const { startedAt, ...rest } = session as ListedSession
  t.ok(startedAt >= before && startedAt <= Date.now())
  const key = sessionKey('id')
  t.strictSame(rest, { tag: `tag of ${key}`, page: pageTag('id'), device: 'Firefox on Linux', client: CR1.client, key })
})

await test('with OpenID Connect it is entered by its session at the provider as well, and each entry names the other', async (t) => {
  const { subjects, calls } = heldSubjects({ hasLogouts: true })
  t.strictSame(await subjects.enlist({ ...CR1, identity: IDENTITY }), {
    subject: 'CR1',
    place: PLACE,
    twin: TWIN,
    count: 7,
    issuedAt: 100,
  })
  t.match(calls, [
    ['add', 'CR1', PLACE, { issuedAt: 100, hasSid: true, twin: TWIN }, CR1.endsAt],
    ['enlist', IDENTITY, TWIN, { issuedAt: 100, hasSid: true, subject: 'CR1', twin: PLACE }, CR1.endsAt],
  ])
  const other = heldSubjects({ hasLogouts: true })
  t.match(await other.subjects.enlist({ ...CR1, identity: sidless }), { twin: undefined, issuedAt: 100 })
  t.match(other.calls[0]?.[3], { issuedAt: 100, hasSid: false })
  t.equal(Object(other.calls[0]?.[3]).twin, undefined)
  const without = heldSubjects()
  t.match(await without.subjects.enlist({ ...CR1, identity: IDENTITY }), { issuedAt: undefined })
})

await test('a session that could not be entered in both indexes is taken back from both', async (t) => {
  for (const failing of ['add', 'enlist']) {
    const { subjects, calls, world } = heldSubjects({ hasLogouts: true })
    world.before = async (what) => {
      if (what === failing || what === 'remove') throw new Error(`planted in ${what}`)
    }
    await t.rejects(subjects.enlist({ ...CR1, identity: IDENTITY }), { message: `planted in ${failing}` })
    await setImmediate()
    t.match(calls.at(-1), ['remove', [{ place: PLACE, twin: TWIN }]])
  }
})

await test('a session is entered, and taken back, once both indexes have said so', async (t) => {
  for (const slow of ['add', 'enlist', 'remove']) {
    const { subjects, world } = heldSubjects({ hasLogouts: true })
    const gate = Promise.withResolvers<void>()
    world.before = async (what) => (what === slow ? gate.promise : undefined)
    const run = async (): Promise<void> => subjects.withdraw(await subjects.enlist({ ...CR1, identity: IDENTITY }))
    let isOver = false
    const done = run().finally(() => (isOver = true))
    await setImmediate()
    t.equal(isOver, false, slow)
    gate.resolve()
    await done
  }
})

await test('a session may live if its entry is there and its login is younger than the last end of all', async (t) => {
  const { subjects, world } = heldSubjects()
  const enlisted = await subjects.enlist(CR1)
  for (const [isListed, endedAgoMs, ageMs, expected] of [
    [true, undefined, 0, true],
    [false, undefined, 0, false],
    [true, 5.001, 0, true],
    [true, 5, 0, false],
    [true, 1006.01, 1000, true],
    [true, 1005.99, 1000, false],
    [true, undefined, (ENDED_MS - 5.001) / 1.001, true],
    [true, undefined, (ENDED_MS - 4.999) / 1.001, false],
    [false, 5000, 0, false],
  ] as const) {
    world.state = { isListed, endedAgoMs }
    t.equal(await subjects.mayLive(enlisted, () => ageMs), expected, `${isListed} ${endedAgoMs} ${ageMs}`)
  }
})

await test('a session that the provider may log out lives only if it has not', async (t) => {
  const { subjects, world, calls } = heldSubjects({ hasLogouts: true })
  const enlisted = await subjects.enlist({ ...CR1, identity: IDENTITY })
  t.equal(await subjects.mayLive(enlisted, () => 0), true)
  t.match(calls.at(-1), ['mayLive', 100, TWIN, world.state, Function])
  world.mayLive = false
  t.equal(await subjects.mayLive(enlisted, () => 0), false)
  t.equal(await subjects.mayLive({ ...enlisted, issuedAt: undefined }, () => 0), true, 'the provider cannot')
})

const world = (more: Partial<World>): Partial<World> => ({
  listed: ['a', 'own', 'b'],
  live: ['a', 'own', 'b'],
  ...more,
})

await test('beyond the limit the oldest sessions end, and those that are gone make room first', async (t) => {
  for (const [what, more, count, maxSessions, removed, ended] of [
    ['at the limit', {}, 3, 3, undefined, undefined],
    ['beyond it, by a later one that makes room itself', {}, 4, 2, [], []],
    ['beyond it', {}, 4, 1, [], ['a']],
    ['beyond it, by a later one that added elsewhere', { elsewhere: ['b'] }, 4, 1, [], ['a', 'own']],
    ['one is gone', { live: ['own', 'b'] }, 4, 1, ['a'], []],
    ['a later one is gone', { live: ['a', 'own'] }, 4, 1, [], ['a']],
    ['a later one that added elsewhere is gone', { live: ['a'], elsewhere: ['b'] }, 3, 1, ['b'], ['a']],
    ['no limit', {}, 99, Infinity, undefined, undefined],
    ['after a hundred logins', { live: [] }, 100, Infinity, ['a'], []],
    ['not listed any more', { listed: ['a', 'b'] }, 4, 1, undefined, undefined],
    ['the largest limit', {}, 1001, Infinity, [], []],
  ] as const) {
    const { subjects, calls } = heldSubjects({ maxSessions, world: world(more) })
    const enlisted = { subject: 'CR1', place: { index: 'index', id: 'id of own' }, count, issuedAt: undefined }
    await subjects.makeRoom(enlisted, REQUESTER)
    const [first, second] = calls
    t.same(first && [first[0], keysOf(first[1])], removed && ['remove', removed], what)
    t.same(
      second && [second[0], keysOf(second[1]), second[2]],
      ended && ['end', ended, { reason: 'replaced', requester: REQUESTER, subject: 'CR1' }],
      what,
    )
  }
  const listed = Array.from({ length: 1002 }, (_, at) => `${at}`)
  const { subjects, calls } = heldSubjects({ maxSessions: 5000, world: { listed, live: listed } })
  const enlisted = { subject: 'CR1', place: { index: 'index', id: 'id of 1001' }, count: 1002, issuedAt: undefined }
  await subjects.makeRoom(enlisted, REQUESTER)
  t.same(keysOf(calls[1]?.[1]), ['0', '1'], 'a thousand are the most')
})

await test('room is made once the sessions that are gone are removed, and the oldest have ended', async (t) => {
  for (const slow of ['remove', 'end']) {
    const { subjects, calls, world: held } = heldSubjects({ maxSessions: 1, world: world({}) })
    const gate = Promise.withResolvers<void>()
    held.before = async (what) => (what === slow ? gate.promise : undefined)
    const enlisted = { subject: 'CR1', place: { index: 'index', id: 'id of own' }, count: 3, issuedAt: undefined }
    let isOver = false
    const made = subjects.makeRoom(enlisted, REQUESTER).finally(() => (isOver = true))
    await setImmediate()
    t.same([isOver, calls.length], [false, slow === 'remove' ? 1 : 2], slow)
    gate.resolve()
    await made
  }
})

await test('a list has the live sessions, the oldest first, with the time of their last use where that is known', async (t) => {
  const { subjects, world: held } = heldSubjects({ world: { listed: ['c', 'gone', 'a', 'b'], live: ['a', 'b', 'c'] } })
  held.startedAt = { a: 1, b: 2, c: 500_000 }
  held.idleEndsAt = { a: 3_600_000, b: 3_599_999, c: 1_160_000 }
  t.strictSame(await subjects.list('CR1'), [
    { tag: 'tag of a', startedAt: 1, lastUsedAt: undefined, client: 'client' },
    { tag: 'tag of b', startedAt: 2, lastUsedAt: 3_599_999 - 600_000 - 60_000, client: 'client' },
    { tag: 'tag of c', startedAt: 500_000, lastUsedAt: 500_000, client: 'client' },
  ])
  t.equal(await subjects.countOthers('CR1', 'a'), 2)
})

await test('an end of all names the subject, and spares the session that the caller ends', async (t) => {
  const { subjects, calls } = heldSubjects()
  const own = { key: 'own', record: {} } as Session
  t.equal(await subjects.endAll('CR1', BY, own), 4)
  const ends = ['end all', 'CR1', { ...BY, subject: 'CR1' }, 'own']
  t.same(calls, [ends, ['note subject', own]])
  await subjects.endAll('CR1', BY, { key: 'own' })
  t.same(calls.slice(2), [ends], 'for one that has ended already, it is not noted anew')
})

await test('a session ends by the tag that the index or the log has for it, and not by another', async (t) => {
  for (const [tag, ended] of [
    ['tag of a', ['a']],
    ['newer tag of b', ['b']],
    ['a', []],
  ] as const) {
    const { subjects, calls } = heldSubjects({ world: world({ tag: (key) => `newer tag of ${key}` }) })
    t.equal(await subjects.endTagged('CR1', tag, BY), ended.length > 0)
    t.same([keysOf(calls[0]?.[1]), calls[0]?.[2]], [ended, { ...BY, subject: 'CR1' }])
  }
})

await test('who tells the subjects, and how many sessions one may have, is in the settings', async (t) => {
  const identified = { IDENTITY_PATH: '/me', IDENTITY_POINTER: '/id' }
  const oidc = { OIDC: 'true', OAUTH_SCOPE: 'openid', DISCOVERY: 'true' }
  const one = { MAX_SESSIONS_PER_SUBJECT: '1' }
  for (const [more, asks, limit, ended] of [
    [{ ...identified, ...one }, true, 1, undefined],
    [identified, true, 2, undefined],
    [{ ...oidc, ...one }, false, 1, 0],
    [{ ...oidc, BACKCHANNEL_WITHOUT_SID: 'subject' }, false, 2, 1],
    [{}, false, 2, 0],
  ] as const) {
    const store = new MemoryStore()
    const secrets = new Changeable(['the secret of a test, of thirty-two bytes'])
    const envelope = new Envelope(secrets)
    const limits = { idleMs: 600_000, maxMs: 3_600_000 }
    const sessions = new SessionRepository(store, envelope, limits, logNames('secret'))
    const config = { ...readConfig({ ...ALONE, ...more }), secrets }
    const deps = { store, envelope, sessions, budget: undefined, registry: new Registry() }
    const subjects = await Subjects.open(config, deps)
    t.teardown(() => subjects.identity?.close())
    t.same([subjects.identity !== undefined, subjects.logouts !== undefined], [asks, !asks])
    const identity: LoginIdentity = { ...IDENTITY, sid: 'sid' }
    for (const id of ['one', 'two']) {
      await sessions.create(id, sessionRecord())
      const enlisted = await subjects.enlist({ ...CR1, id, endsAt: Date.now() + 60_000, identity })
      t.equal(enlisted.place.index, subjectKey('CR1', secrets.current[0] ?? ''))
      const sid = providerSessionKey(nameOf(identity.iss, 'sid'), secrets.current[0] ?? '')
      t.equal(enlisted.twin?.index, asks ? undefined : sid)
      await subjects.makeRoom(enlisted, REQUESTER)
    }
    t.equal((await subjects.list('CR1')).length, limit, JSON.stringify(more))
    const two = { subject: 'CR1', id: 'two', key: sessionKey('two') }
    t.match(await subjects.own.list(two), { is: 'listed', sessions: [{ tag: pageTag('two') }] })
    await sessions.create('sidless', sessionRecord())
    await subjects.enlist({ ...CR1, id: 'sidless', endsAt: Date.now() + 60_000, identity: { ...sidless, issuedAt: 1 } })
    const logout = { subject: 'CR1', sid: 'another session', issuedAt: 50 }
    t.equal(await subjects.logouts?.end(logout as LogoutToken, REQUESTER), ended)
  }
})
