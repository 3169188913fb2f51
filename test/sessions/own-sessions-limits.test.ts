import { test } from 'tap'
import { OwnSessions, type LiveSession } from '../../src/sessions/own-sessions.ts'
import { pageTag } from '../../src/sessions/session.ts'
import type { Cause, ListedSession, SubjectIndex } from '../../src/sessions/subject-index.ts'
import { partKey, sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { REQUESTER } from '../support/sessions/subject-instance.ts'

const BY: Cause = { reason: 'logout', requester: REQUESTER }
const ME = { subject: 'CR1', id: 'mine', key: sessionKey('mine') }
const INDEX = 'index of CR1'

/** A session as it is listed. */
const entry = (id: string): LiveSession => ({
  key: sessionKey(id),
  page: pageTag(id),
  tag: `tag of ${id}`,
  startedAt: 1,
  lastUsedAt: 2,
  client: REQUESTER.client,
  device: 'a browser',
  place: { id } as unknown as LiveSession['place'],
  endsAt: 3,
})

/** The own sessions of a page whose readings and ends a test counts. */
function counted(sessions: Record<string, readonly LiveSession[]> = { CR1: [entry('other'), entry('mine')] }) {
  const store = new MemoryStore()
  const reads: string[] = []
  const ends: unknown[] = []
  const world = { ended: 1, before: async (_subject: string): Promise<void> => undefined }
  const index = {
    keysOf: (subject: string) => [`index of ${subject}`, `older index of ${subject}`],
    list: async (subject: string): Promise<readonly ListedSession[]> => sessions[subject] ?? [],
    end: async (meant: readonly ListedSession[], cause: unknown) => {
      ends.push(
        meant.map(({ tag }) => tag),
        cause,
      )
      return world.ended
    },
  }
  const own = new OwnSessions(index as unknown as SubjectIndex, store, async (subject) => {
    reads.push(subject)
    await world.before(subject)
    return sessions[subject] ?? []
  })
  return { store, own, reads, ends, world }
}

await test('a list that was read a moment ago counts, unless it lacks the session of the page', async (t) => {
  const { own, reads } = counted()
  const listing = await own.list(ME)
  t.same(listing, {
    is: 'listed',
    sessions: [
      { tag: pageTag('mine'), startedAt: 1, lastUsedAt: 2, isCurrent: true, device: 'a browser' },
      { tag: pageTag('other'), startedAt: 1, lastUsedAt: 2, isCurrent: false, device: 'a browser' },
    ],
  })
  t.same(await own.list(ME), listing)
  t.equal(reads.length, 1)
  await own.list({ ...ME, id: 'new', key: sessionKey('new') })
  t.equal(reads.length, 2)
})

await test('a page may ask ten times a minute for its sessions, and end 120; every version counts in the same place', async (t) => {
  const { own, store } = counted()
  for (let count = 0; count < 10; count++) t.equal((await own.list(ME)).is, 'listed')
  const limited = await own.list(ME)
  if (limited.is !== 'limited') throw new Error(limited.is)
  t.ok(limited.waitMs > 50_000 && limited.waitMs <= 60_000)
  await own.end(ME, 'nobody', BY)
  t.equal((await store.readUntracked(partKey(INDEX, 'listings')))?.value, '11')
  t.equal((await store.readUntracked(partKey(INDEX, 'ends')))?.value, '1')
})

await test('an end is that of the session whose tag a page names, and never of its own', async (t) => {
  const { own, ends, store, world } = counted()
  t.same(await own.end(ME, pageTag('mine'), BY), { is: 'current' })
  t.same(await own.end(ME, 'nobody', BY), { is: 'unknown' })
  t.same(ends, [])
  t.equal(await store.readUntracked(partKey(INDEX, 'ended')), undefined)
  t.same(await own.end(ME, pageTag('other'), BY), { is: 'ended' })
  t.same(ends, [['tag of other'], { ...BY, subject: 'CR1' }])
  for (const each of [INDEX, `older ${INDEX}`]) {
    const mark = await store.readUntracked(partKey(each, 'ended'))
    t.equal(mark?.value, '1', 'whichever index an instance reads')
  }
  world.ended = 0
  t.same(await own.end(ME, pageTag('other'), BY), { is: 'unknown' }, 'somebody else has just ended it')
})

await test('an end is told once no instance shows the session any more', async (t) => {
  const { own, store, reads } = counted()
  await own.list(ME)
  const count = store.count.bind(store)
  store.count = async (...args) => {
    t.equal(args[3], true, 'even when the store is full')
    await new Promise(setImmediate)
    return count(...args)
  }
  await own.end(ME, pageTag('other'), BY)
  t.equal((await store.readUntracked(partKey(INDEX, 'ended')))?.value, '1')
  await own.list(ME)
  t.equal(reads.length, 2)
  await own.list(ME)
  t.equal(reads.length, 2, 'the newer one counts')
})

await test('a list that others push out before it was read counts for those who wait for it', async (t) => {
  const many = Array.from({ length: 19_998 }, (_each, at) => entry(`${at}`))
  const { own, world } = counted({ CR1: [entry('mine')], CR2: [...many, entry('yours')], CR3: [entry('theirs')] })
  const gate = Promise.withResolvers<void>()
  world.before = (subject) => (subject === 'CR1' ? gate.promise : Promise.resolve())
  const waiting = own.list(ME)
  for (const [subject, id] of [
    ['CR2', 'yours'],
    ['CR3', 'theirs'],
  ] as const)
    t.equal((await own.list({ subject, id, key: sessionKey(id) })).is, 'listed')
  gate.resolve()
  t.match(await waiting, { is: 'listed', sessions: [{ tag: pageTag('mine') }] })
})
