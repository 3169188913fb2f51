import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { SessionRepository } from '../../src/sessions/repository.ts'
import type { SessionRecord } from '../../src/sessions/session.ts'
import { besideKey, sessionKey } from '../../src/store/keys.ts'
import { Unsent } from '../../src/store/links/unsent.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { logTag } from '../../src/telemetry/log.ts'
import { exactly } from '../support/exactly.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const IDLE_MS = 600_000
const KEY = sessionKey('id')

/** Sessions on a store whose link may come back, and all that they write. The clocks stand. */
function writing(t: Test, { idleMs = IDLE_MS, secrets = ['the first secret', 'the second secret'] } = {}) {
  const pass = stoppedClocks(t)
  const store = new MemoryStore()
  const listeners: ((key: string | undefined) => void)[] = []
  store.onChange = (listener) => void listeners.push(listener)
  const calls: unknown[][] = []
  for (const name of ['create', 'extend', 'replace', 'removeIf', 'isReplicated'] as const) {
    const before = store[name].bind(store) as (...args: unknown[]) => unknown
    Object.assign(store, {
      [name]: (...args: unknown[]) => {
        calls.push([name, ...args])
        return before(...args)
      },
    })
  }
  const changing = new Changeable<readonly string[]>(secrets)
  const envelope = new Envelope(changing)
  const sessions = new SessionRepository(
    store,
    envelope,
    { idleMs, maxMs: 3_600_000 },
    {
      secrets: changing,
      logsPlainSubjects: false,
    },
  )
  const made = async (more: Partial<SessionRecord> = {}) => {
    await sessions.create('id', sessionRecord(more))
    const session = await sessions.load('id')
    if (session === undefined) throw new Error('not loaded')
    calls.length = 0
    return session
  }
  const comeBack = (): void => {
    for (const listener of listeners) listener(undefined)
  }
  return { pass, store, envelope, changing, sessions, calls, made, comeBack }
}

await test('a session is written sealed under the hash of its id, until its idle limit or its absolute one', async (t) => {
  const { sessions, calls, envelope } = writing(t)
  for (const [leftMs, idleMs] of [
    [3_600_000, IDLE_MS],
    [1000, 1000],
  ] as const) {
    const id = `id ${leftMs}`
    const record = sessionRecord({ endsAt: Date.now() + leftMs })
    await sessions.create(id, record)
    const [what, key, sealed, until] = calls.splice(0).at(0) ?? []
    t.same([what, key, until], ['create', sessionKey(id), Date.now() + idleMs])
    t.strictSame(JSON.parse(envelope.open(sessionKey(id), id, String(sealed)) ?? ''), record)
    t.match(await sessions.load(id), { id, key, idleEndsAt: until, sealed, record })
  }
})

await test('a session with the id of another is refused, and leaves that as it is', async (t) => {
  const { sessions, made } = writing(t)
  const { sealed } = await made()
  await t.rejects(sessions.create('id', sessionRecord()), { message: 'a session with this id already exists' })
  t.equal((await sessions.load('id'))?.sealed, sealed)
})

await test('a session whose creation has failed is taken back once the store is there', async (t) => {
  const { sessions, store, calls, comeBack } = writing(t)
  const create = store.create.bind(store)
  const cause = new StoreUnavailable('the reply was lost')
  store.create = async (...args) => {
    await create(...args)
    throw cause
  }
  await t.rejects(sessions.create('id', sessionRecord()), cause)
  const { value = '' } = (await store.read(KEY)) ?? {}
  t.not(value, '')
  comeBack()
  t.same(calls.slice(1), [['removeIf', KEY, value]])
  t.equal(await store.read(KEY), undefined)
})

await test('a session whose creation was not even sent is not taken back', async (t) => {
  const { sessions, store, calls, comeBack } = writing(t)
  const cause = new StoreUnavailable(new Unsent('there is no connection'))
  store.create = () => Promise.reject(cause)
  await t.rejects(sessions.create('id', sessionRecord()), cause)
  comeBack()
  t.same(calls, [])
})

await test('a session that this instance cannot open, or that is missing, is none', async (t) => {
  const { sessions, made, changing, store } = writing(t)
  t.equal(await sessions.load('id'), undefined)
  t.equal(await sessions.touch('id', Date.now() + 1000), undefined)
  await made()
  changing.change(['another secret'])
  t.equal(await sessions.load('id'), undefined)
  t.equal(await sessions.touch('id', Date.now() + 1000), undefined)
  t.ok(await store.read(KEY), 'another instance may open it')
})

await test('the idle limit moves in steps of a tenth of SESSION_IDLE_SECONDS, a minute at most', (t) => {
  for (const [idleMs, stepMs] of [
    [IDLE_MS, 60_000],
    [599_999, 59_999],
    [3_600_000, 60_000],
    [10_000, 1000],
    [9, 1],
  ] as const) {
    t.equal(writing(t, { idleMs }).sessions.stepMs, stepMs)
  }
  t.end()
})

await test('a use moves the idle limit to a whole number of steps before the end, which all uses of a step agree on', async (t) => {
  const { sessions, calls, made } = writing(t)
  const { record } = await made()
  for (const [afterIdleMs, stepsBefore] of [
    [0, 0],
    [-1, 0],
    [1, 0],
    [59_999, 0],
    [60_000, 1],
    [119_999, 1],
    [120_000, 2],
  ] as const) {
    const endsAt = Date.now() + IDLE_MS + afterIdleMs
    const touched = await sessions.touch('id', endsAt)
    t.same(calls.splice(0), [['extend', KEY, endsAt - stepsBefore * 60_000]])
    t.match(touched, { id: 'id', key: KEY, record })
  }
})

await test('a replacement needs the session as it was, and leaves its idle limit where others have moved it', async (t) => {
  const { sessions, calls, made } = writing(t)
  const session = await made()
  const record = { ...session.record, accessToken: 'new' }
  const moved = await sessions.touch('id', record.endsAt)
  calls.length = 0
  const replaced = await sessions.replace(session, record)
  const [what, key, before, sealed, ...more] = calls[0] ?? []
  t.same([what, key, before, more], ['replace', KEY, session.sealed, []])
  t.strictSame(replaced, { ...session, record, sealed })
  t.strictSame(await sessions.load('id'), { ...moved, record, sealed })
  t.equal(await sessions.replace(session, record), undefined, 'it is another one now')
})

await test('the tags in the log are keyed with the first secret', async (t) => {
  const { sessions, made, changing } = writing(t)
  const session = await made({ subject: 'CR1' })
  t.match(session, { tag: logTag('the first secret', KEY), subjectTag: logTag('the first secret', 'subject:CR1') })
  changing.change(['the second secret', 'the first secret'])
  t.equal(sessions.tag(KEY), logTag('the second secret', KEY))
  changing.change([])
  t.equal(sessions.tag(KEY), logTag('', KEY))
})

await test('an end by the id returns the record, and waits for a replica unless the id may be made up', async (t) => {
  const { sessions, calls, made } = writing(t)
  const { record } = await made({ subject: 'CR1' })
  const ends: unknown[] = []
  sessions.endings.onEnd((ending) => ends.push(ending))
  const requester = { reqId: 'request', client: '203.0.113.9' }
  t.equal(await sessions.endById('made up', 'logout', false), undefined)
  t.same(calls, [])
  t.strictSame(await sessions.endById('id', 'logout', true, requester), record)
  t.match(ends.at(-1), { key: KEY, reason: 'logout', requester, record, subjectTag: sessions.subjectTag('CR1') })
  t.equal(await sessions.endById('id', 'logout', true), undefined)
  t.same(
    calls.filter(([what]) => what === 'isReplicated'),
    [
      ['isReplicated', KEY],
      ['isReplicated', KEY],
    ],
  )
})

await test('a session that this instance cannot open ends all the same', async (t) => {
  const { sessions, made, changing, store } = writing(t)
  await made({ subject: 'CR1' })
  changing.change(['another secret'])
  t.equal(await sessions.endById('id', 'logout', true), undefined)
  t.equal(await store.read(KEY), undefined)
})

await test('an end tells whose request it was, as far as it is said', async (t) => {
  const { sessions, made } = writing(t)
  await made()
  const ends: unknown[] = []
  sessions.endings.onEnd((ending) => ends.push(ending))
  const requester = { reqId: 'request', client: '203.0.113.9' }
  t.equal(await sessions.end(KEY, 'revoked', { requester, subjectTag: 'whose' }), true)
  t.equal(await sessions.end(KEY, 'revoked'), false)
  t.match(ends, exactly({ reason: 'revoked', requester, subjectTag: 'whose' }, { requester: undefined }))
})

await test('whose session is about to end is noted beside it for a minute, sealed, for whoever has its id', async (t) => {
  const { sessions, made, store } = writing(t)
  const session = await made({ subject: 'CR1' })
  t.equal(await sessions.notedSubject('id'), undefined)
  await sessions.noteSubject(session)
  const note = await store.read(besideKey(KEY, 'subject'))
  t.equal(note?.expiresAt, Date.now() + 60_000)
  t.notMatch(note?.value, 'CR1')
  t.equal(await sessions.notedSubject('id'), 'CR1')
  const other = writing(t)
  await other.sessions.noteSubject(await other.made())
  t.equal(await other.sessions.notedSubject('id'), '', 'a session without a subject')
})

await test('a session that a login replaces ends later where only its master of a Cluster is gone, and the login fails where all are', async (t) => {
  const { sessions, made, store, comeBack } = writing(t)
  await made()
  const bury = store.bury.bind(store)
  const end = (error: Error) => {
    store.bury = () => Promise.reject(error)
    return sessions.endReplaced(KEY, {})
  }
  await t.rejects(end(new TypeError('planted')), /planted/)
  Object.assign(store, { unavailableSince: () => 1 })
  await t.rejects(end(new StoreUnavailable('away')), StoreUnavailable)
  Object.assign(store, { unavailableSince: () => undefined })
  await end(new StoreUnavailable(new Unsent('its master is gone')))
  t.ok(await store.read(KEY))
  store.bury = bury
  comeBack()
  t.equal(await store.read(KEY), undefined)
})
