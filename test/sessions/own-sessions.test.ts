import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { pageTag } from '../../src/sessions/session.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { REQUESTER, subjectInstance, type SubjectInstance } from '../support/sessions/subject-instance.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'

const BY = { reason: 'logout', requester: REQUESTER } as const
const NEXT = 'the-next-secret-of-thirty-two-bytes-or-more'

/** What names a session of CR1 to its own page. */
const own = (id: string) => ({ subject: 'CR1', id, key: sessionKey(id) })

/** Begins a session of CR1. */
async function begin({ subjects, sessions }: SubjectInstance, id: string): Promise<void> {
  const { endsAt } = sessionRecord()
  await subjects.enlist({ subject: 'CR1', id, endsAt, client: REQUESTER.client })
  await sessions.create(id, sessionRecord({ subject: 'CR1', endsAt }))
}

async function tags({ subjects }: SubjectInstance, id: string): Promise<string[]> {
  const listing = await subjects.own.list(own(id))
  if (listing.is === 'limited') throw new Error('limited')
  return listing.sessions.map(({ tag }) => tag)
}

/** An instance with a store of its own, in which CR1 has the sessions `first` and `second`. */
async function twoSessions(): Promise<{ store: MemoryStore; instance: SubjectInstance }> {
  const store = new MemoryStore()
  const instance = await subjectInstance(store)
  for (const id of ['first', 'second']) await begin(instance, id)
  return { store, instance }
}

/** A barrier: whoever passes waits until it is opened. `reached` resolves when somebody has come. */
function barrier() {
  const [come, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const pass = (): Promise<void> => {
    come.resolve()
    return opened.promise
  }
  return { pass, reached: come.promise, open: () => opened.resolve() }
}

await test('of more than 100 sessions a page learns of the newest', async (t) => {
  const instance = await subjectInstance(new MemoryStore())
  for (let count = 0; count < 120; count++) await begin(instance, `session ${count}`)
  const listed = await tags(instance, 'session 119')
  t.equal(listed.length, 100)
  for (const count of [20, 119]) t.ok(listed.includes(pageTag(`session ${count}`)))
})

await test('during a roll of secrets every instance lists and ends the sessions of all, and none keeps an older list', async (t) => {
  const store = new MemoryStore()
  const before = await subjectInstance(store, { secrets: [SECRETS, NEXT] })
  const after = await subjectInstance(store, { secrets: [NEXT, SECRETS] })
  await begin(before, 'first')
  await begin(after, 'second')
  await begin(before, 'third')
  for (const each of [before, after]) t.equal((await tags(each, 'first')).length, 3)
  t.same(await before.subjects.own.end(own('first'), pageTag('second'), BY), { is: 'ended' })
  t.equal((await tags(after, 'first')).length, 2)
  t.same(await after.subjects.own.end(own('first'), pageTag('third'), BY), { is: 'ended' })
  for (const each of [before, after]) t.same(await tags(each, 'first'), [pageTag('first')])
})

await test('a list whose reading began before the end of a session is not kept', async (t) => {
  const { store, instance } = await twoSessions()
  const readUntracked = store.readUntracked.bind(store)
  const { pass, reached, open } = barrier()
  store.readUntracked = async (key) => {
    const found = await readUntracked(key)
    if (key === sessionKey('second')) await pass()
    return found
  }
  const reading = tags(instance, 'first')
  await reached
  t.same(await instance.subjects.own.end(own('first'), pageTag('second'), BY), { is: 'ended' })
  open()
  await reading
  t.same(await tags(instance, 'first'), [pageTag('first')])
})

await test('a session that could not be ended is still listed', async (t) => {
  const { store, instance } = await twoSessions()
  const bury = store.bury.bind(store)
  store.bury = async () => {
    throw new Error('planted')
  }
  await t.rejects(instance.subjects.own.end(own('first'), pageTag('second'), BY))
  t.equal((await tags(instance, 'first')).length, 2)
  store.bury = bury
  t.same(await instance.subjects.own.end(own('first'), pageTag('second'), BY), { is: 'ended' })
})

await test('a subject may try to end 120 sessions in a minute', async (t) => {
  const { instance } = await twoSessions()
  const { subjects } = instance
  for (let times = 0; times < 120; times++) t.same(await subjects.own.end(own('first'), 'x', BY), { is: 'unknown' })
  t.match(await subjects.own.end(own('first'), pageTag('second'), BY), { is: 'limited', waitMs: Number })
  t.same(await subjects.own.end({ ...own('first'), subject: 'CR2' }, 'x', BY), { is: 'unknown' }, 'another subject')
})

await test('a list that was read while a session was being ended is not kept', async (t) => {
  const { store, instance } = await twoSessions()
  const bury = store.bury.bind(store)
  const { pass, reached, open } = barrier()
  store.bury = async (...args) => {
    await pass()
    return bury(...args)
  }
  const ending = instance.subjects.own.end(own('first'), pageTag('second'), BY)
  await reached
  t.equal((await tags(instance, 'first')).length, 2, 'it has not ended yet')
  open()
  t.same(await ending, { is: 'ended' })
  t.same(await tags(instance, 'first'), [pageTag('first')])
})

await test('a list does not count after an end, although the end before it has just been forgotten', async (t) => {
  const ahead = clockAhead(t)
  const instance = await subjectInstance(new MemoryStore())
  for (const id of ['first', 'second', 'third']) await begin(instance, id)
  t.same(await instance.subjects.own.end(own('first'), pageTag('second'), BY), { is: 'ended' })
  ahead(14_000)
  t.equal((await tags(instance, 'first')).length, 2)
  ahead(1500)
  // lru-cache looks at the clock once a millisecond.
  await pause(5)
  t.same(await instance.subjects.own.end(own('first'), pageTag('third'), BY), { is: 'ended' })
  t.same(await tags(instance, 'first'), [pageTag('first')])
})

await test('an end is remembered for as long as any instance may keep a list from before it', async (t) => {
  const ahead = clockAhead(t)
  const store = new MemoryStore()
  const [one, other] = [await subjectInstance(store), await subjectInstance(store)]
  for (const id of ['first', 'second']) await begin(one, id)
  t.equal((await tags(other, 'first')).length, 2)
  t.same(await one.subjects.own.end(own('first'), pageTag('second'), BY), { is: 'ended' })
  ahead(4500)
  await pause(5)
  t.same(await tags(other, 'first'), [pageTag('first')])
})
