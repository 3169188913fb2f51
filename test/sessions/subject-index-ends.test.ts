import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import type { Cause, ListedSession } from '../../src/sessions/subject-index.ts'
import { heldIndex } from '../support/sessions/held-index.ts'
import { REQUESTER } from '../support/sessions/subject-instance.ts'

const [FIRST, SECOND] = ['the first secret', 'the second secret']
const BY: Cause = { reason: 'logout', requester: REQUESTER, subject: 'CR1' }
const by = (subjectTag?: string) => ({ requester: REQUESTER, subjectTag })

await test('an end of all is noted at all keys and replicated, ends each session but that of the caller, and then removes them', async (t) => {
  const { subjects, add, calls, world } = heldIndex([FIRST, SECOND], (_subject, secret) => secret)
  const twin = { index: 'index by sid', id: 'twin' }
  const first = await add('first', { twin })
  await add('own')
  const gone = await add('gone', { subject: 'CR2' })
  world.gone = ['gone']
  calls.length = 0
  t.equal(await subjects.endAll('CR1', BY, 'own'), 1)
  t.same(calls.slice(0, 2), [
    ['note all', FIRST],
    ['note all', SECOND],
  ])
  t.same(
    new Set(calls.slice(2, 6)),
    new Set([
      ['replicate', FIRST],
      ['replicate', SECOND],
      ['end', 'first', 'logout', by('tag of CR1')],
      ['end', 'gone', 'logout', by('tag of CR2')],
    ]),
  )
  t.same(calls.slice(6), [
    ['remove', FIRST, [first.place.id, gone.place.id]],
    ['remove', 'index by sid', ['twin']],
  ])
  calls.length = 0
  t.equal(await subjects.endAll('CR1', { ...BY, subject: 'CR3' }), 2)
  t.match(
    calls.filter(([what]) => what === 'end').map(([, key]) => key),
    ['first', 'own', 'gone'],
  )
})

await test('an end of all is over when all of it is: the replicas, the ends and the removal', async (t) => {
  for (const slow of ['note all', 'replicate', 'end', 'remove']) {
    const { subjects, add, world, calls } = heldIndex()
    await add('a session')
    const gate = Promise.withResolvers<void>()
    world.before = async (what) => (what === slow ? gate.promise : undefined)
    let isOver = false
    const ended = subjects.endAll('CR1', BY).finally(() => (isOver = true))
    await setImmediate()
    t.equal(isOver, false, slow)
    if (slow === 'end')
      t.notOk(
        calls.some(([what]) => what === 'remove'),
        'it is removed last',
      )
    gate.resolve()
    t.equal(await ended, 1)
  }
})

await test('an end that fails leaves the sessions to be found again', async (t) => {
  const { subjects, add, world, calls } = heldIndex()
  await add('a session')
  world.before = async (what) => {
    if (what === 'end') throw new Error('planted')
  }
  await t.rejects(subjects.endAll('CR1', BY), /planted/)
  t.notOk(calls.some(([what]) => what === 'remove'))
})

await test('a logout at the provider ends the sessions of older logins: all of them, or those that know no sid', async (t) => {
  for (const [mark, expected] of [
    ['issued', ['at', 'before', 'sidless', 'without']],
    ['sidless', ['sidless', 'without']],
  ] as const) {
    const { subjects, add, calls } = heldIndex()
    await add('at', { issuedAt: 100, hasSid: true })
    await add('before', { issuedAt: 99, hasSid: true })
    await add('after', { issuedAt: 101, hasSid: true })
    await add('sidless', { issuedAt: 100, hasSid: false })
    await add('sidless after', { issuedAt: 101, hasSid: false })
    await add('without')
    calls.length = 0
    t.equal(await subjects.endIssued('CR1', mark, 100, BY), expected.length)
    const [key] = subjects.keysOf('CR1')
    t.same(calls[0], ['note issued', key, mark, 100])
    t.ok(calls.some(([what, at]) => what === 'replicate' && at === key))
    t.same(calls.flatMap(([what, ended]) => (what === 'end' ? [String(ended)] : [])).sort(), expected)
  }
})

await test('some sessions are noted as ended before they end, each at its index', async (t) => {
  const { subjects, world, calls } = heldIndex()
  const listed = ['a', 'b', 'c'].map((key) => {
    return { key, place: { index: key === 'c' ? 'other index' : 'index', id: `id of ${key}` } } as ListedSession
  })
  world.gone = ['b']
  const gate = Promise.withResolvers<void>()
  world.before = async (what) => (what === 'note' ? gate.promise : undefined)
  const ended = subjects.end(listed, { reason: 'replaced', requester: REQUESTER })
  await setImmediate()
  t.same(calls, [])
  gate.resolve()
  t.equal(await ended, 2)
  t.same(calls, [
    ['note', 'index', ['id of a', 'id of b']],
    ['note', 'other index', ['id of c']],
    ...['a', 'b', 'c'].map((key) => ['end', key, 'replaced', by()]),
    ['remove', 'index', ['id of a', 'id of b']],
    ['remove', 'other index', ['id of c']],
  ])
})

await test('an end of all ends every session that it can, however many others it cannot, and then fails', async (t) => {
  const { subjects, add, world, calls } = heldIndex()
  for (let count = 0; count < 200; count++) await add(`session ${count}`)
  let ends = 0
  // As a master of a Cluster that is away does it.
  world.before = async (what) => {
    if (what === 'end' && ++ends <= 100) throw new Error('away')
  }
  await t.rejects(subjects.endAll('CR1', BY), { message: 'away' })
  t.equal(calls.filter(([what]) => what === 'end').length, 100)
  t.notOk(calls.some(([what]) => what === 'remove'))
})
