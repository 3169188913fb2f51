import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { SessionRepository } from '../../src/sessions/repository.ts'
import type { SessionRecord } from '../../src/sessions/session.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'

const IDLE_MS = 600_000
const SECRETS = new Changeable(['the only secret'])

function repository({ needsIdentity = false, logsPlainSubjects = false } = {}) {
  const store = new MemoryStore()
  const envelope = new Envelope(SECRETS)
  const options = { secrets: SECRETS, needsIdentity, logsPlainSubjects }
  const sessions = new SessionRepository(store, envelope, { idleMs: IDLE_MS, maxMs: 3_600_000 }, options)
  const made = async (record: Partial<SessionRecord> = {}) => {
    await sessions.create('id', sessionRecord(record))
    const session = await sessions.load('id')
    if (session === undefined) throw new Error('not loaded')
    return session
  }
  return { store, sessions, made }
}

await test('new tokens are saved during a short outage, since the old refresh token is used up', async (t) => {
  const { store, sessions, made } = repository()
  const session = await made()
  const replace = store.replace.bind(store)
  let tries = 0
  store.replace = async (...args) => {
    if (++tries < 3) throw new StoreUnavailable('away')
    return replace(...args)
  }
  const saved = await sessions.replaceInTime(session, { ...session.record, accessToken: 'new' })
  t.equal(saved?.record.accessToken, 'new')
  t.equal(tries, 3)
  t.equal(await sessions.replaceInTime(session, session.record), undefined, 'the session has changed since it was read')
})

await test('a long outage, and a fault of this program, end the attempt', async (t) => {
  const pass = clockAhead(t)
  const { store, sessions, made } = repository()
  const session = await made()
  let tries = 0
  store.replace = async () => {
    if (++tries === 3) pass(60_000)
    throw new StoreUnavailable('away')
  }
  await t.rejects(sessions.replaceInTime(session, session.record), StoreUnavailable)
  t.equal(tries, 3)
  store.replace = async () => {
    tries++
    throw new TypeError('planted')
  }
  await t.rejects(sessions.replaceInTime(session, session.record), /planted/)
  t.equal(tries, 4)
})

await test('where sessions need an identity, one without it is none', async (t) => {
  const { sessions } = repository({ needsIdentity: true })
  await sessions.create('without', sessionRecord())
  t.equal(await sessions.load('without'), undefined)
  const oidc = { idToken: 'token' } as unknown as NonNullable<SessionRecord['oidc']>
  await sessions.create('with', sessionRecord({ oidc }))
  t.match(await sessions.load('with'), { record: { oidc } })
})

await test('the log names subjects by a keyed hash, or as they are', async (t) => {
  const { sessions, made } = repository()
  t.equal(sessions.subjectTag(undefined), undefined)
  t.match(sessions.subjectTag('CR1'), /^[\w-]{8,}$/)
  t.not(sessions.subjectTag('CR1'), 'CR1')
  t.equal(sessions.subjectTag('CR1'), sessions.subjectTag('CR1'))
  t.not(sessions.subjectTag('CR1'), sessions.subjectTag('CR2'))
  t.not(sessions.subjectTag('CR1'), sessions.tag('CR1'), 'the tag of a session is another one')
  t.notOk('subjectTag' in (await made()))
  const plain = repository({ logsPlainSubjects: true })
  t.equal(plain.sessions.subjectTag('CR1'), 'CR1')
  t.equal((await plain.made({ subject: 'CR1' })).subjectTag, 'CR1')
})

await test('an idle limit is due as soon as it is nearer than SESSION_IDLE_SECONDS, unless it is the absolute one', (t) => {
  const { sessions } = repository()
  const now = 1_000_000
  t.equal(sessions.isDue(now + IDLE_MS - 1, now + 2 * IDLE_MS, now), true)
  t.equal(sessions.isDue(now + IDLE_MS, now + 2 * IDLE_MS, now), false)
  t.equal(sessions.isDue(now + 1000, now + 1000, now), false)
  t.end()
})

await test('an end waits for a replica, and says whether there was a session', async (t) => {
  const { store, sessions, made } = repository()
  const { key } = await made()
  const asked: string[] = []
  store.isReplicated = (async (each: string) => {
    asked.push(each)
    return true
  }) as unknown as MemoryStore['isReplicated']
  t.equal(await sessions.end(key, 'logout'), true)
  t.equal(await sessions.end(key, 'logout'), false)
  t.same(asked, [key, key])
})
