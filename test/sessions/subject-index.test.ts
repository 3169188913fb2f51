import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import type { ListedSession } from '../../src/sessions/subject-index.ts'
import { subjectKey } from '../../src/store/keys.ts'
import type { IndexEntry } from '../../src/store/session-index.ts'
import { heldIndex } from '../support/sessions/held-index.ts'

const [FIRST, SECOND] = ['the first secret', 'the second secret']
const ENDS_AT = 9_000

/** An entry of another secret. */
const older = (addedAt: number): IndexEntry => ({
  id: `${addedAt}`,
  value: 'of another secret',
  expiresAt: 0,
  addedAt,
})

const keysIn = (sessions: readonly ListedSession[]): string[] => sessions.map(({ key }) => key)

await test('a subject has a key for each secret, the first of which gets its new sessions', (t) => {
  const { subjects } = heldIndex([FIRST, SECOND, FIRST])
  t.same(subjects.keysOf('CR1'), [subjectKey('CR1', FIRST), subjectKey('CR1', SECOND)])
  const [one, other] = [subjects.newPlace('CR1'), subjects.newPlace('CR1')]
  t.equal(one.index, subjectKey('CR1', FIRST))
  t.match(one.id, /^[\w-]{12}$/)
  t.not(one.id, other.id)
  const named = heldIndex([FIRST], (subject, secret) => `${subject} of ${secret}`)
  t.same(named.subjects.keysOf('CR1'), [`CR1 of ${FIRST}`])
  t.end()
})

await test('what was added is listed with its place and its end, and says nothing to the store', async (t) => {
  const { subjects, add, entries } = heldIndex([FIRST])
  const { place, count, session } = await add('a session', { device: 'a browser', issuedAt: 5, hasSid: true })
  t.equal(count, 1)
  t.strictSame(await subjects.list('CR1'), [{ ...session, place, endsAt: ENDS_AT }])
  const [entry] = entries.get(place.index) ?? []
  t.match(entry?.value, /^v1\./)
  t.same(await subjects.list('CR2'), [])
})

await test('an entry that was moved to another place is not read', async (t) => {
  const { subjects, add, entries } = heldIndex([FIRST])
  const { place } = await add('a session')
  await add('another session')
  const [one, other] = entries.get(place.index) ?? []
  if (one === undefined || other === undefined) throw new Error('not added')
  entries.set(subjects.keysOf('CR2')[0] ?? '', [one])
  entries.set(place.index, [{ ...one, id: other.id }, other])
  t.same(await subjects.list('CR2'), [])
  t.same(keysIn(await subjects.list('CR1')), ['another session'])
})

await test('an entry is read that was sealed for its place in the index, and none that was sealed for another purpose', async (t) => {
  const { subjects, entries } = heldIndex([FIRST])
  const { index, id } = subjects.newPlace('CR1')
  for (const [purpose, count] of [
    ['index of sessions by subject', 1],
    ['', 0],
  ] as const) {
    const value = new Envelope(new Changeable([FIRST])).seal(`${index}:${id}`, purpose, '{"key":"a session"}')
    entries.set(index, [{ id, value, expiresAt: ENDS_AT, addedAt: 1 }])
    t.equal((await subjects.list('CR1')).length, count)
  }
})

await test('sessions are listed in the order of their logins, of the same moment by their ids, whichever key has them', async (t) => {
  const { subjects, add, entries } = heldIndex([FIRST, SECOND], (_subject, secret) => secret)
  for (const [key, id] of [
    ['a', 'z'],
    ['b', 'x'],
    ['c', 'y'],
  ] as const) {
    await add(key, {}, id)
  }
  t.same(keysIn(await subjects.list('CR1')), ['a', 'b', 'c'])
  const added = entries.get(FIRST) ?? []
  const at = (addedAt: (index: number) => number): IndexEntry[] => {
    return added.map((entry, index) => Object.assign({}, entry, { addedAt: addedAt(index) }))
  }
  const same = at(() => 7)
  for (const each of [same, same.toReversed()]) {
    entries.set(FIRST, each)
    t.same(keysIn(await subjects.list('CR1')), ['b', 'c', 'a'])
  }
  entries.set(
    FIRST,
    at((index) => 10 - index),
  )
  t.same(keysIn(await subjects.list('CR1')), ['c', 'b', 'a'])
})

await test('an entry comes after all that other keys have, and is counted with them as they are once it is there', async (t) => {
  const { add, entries, calls, world } = heldIndex([FIRST, SECOND], (_subject, secret) => secret)
  entries.set(SECOND, [older(50), older(40)])
  world.before = async () => void entries.set(SECOND, [older(50), older(40), older(60)])
  const { place, count } = await add('a session')
  t.same(calls, [['add', FIRST, place.id, 50]])
  t.equal(count, 4)
  const alone = heldIndex([FIRST])
  await alone.add('a session')
  t.match(alone.calls[0]?.at(-1), 0)
})

await test('the state of an entry is that of its place', async (t) => {
  const { subjects } = heldIndex([FIRST])
  t.match(await subjects.look({ index: 'index', id: 'id' }), { isListed: true, key: 'index', id: 'id' })
})
