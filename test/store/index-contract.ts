import type { Test } from 'tap'
import type { Store } from '../../src/store/store.ts'
import { exactly } from '../support/exactly.ts'

let keys = 0
const fresh = (): string => `bff:1:index:${++keys}`
const soon = (): number => Date.now() + 60_000

/** The behaviour that the index of every store must have. */
export async function indexContract(t: Test, store: Store): Promise<void> {
  await t.test('an index lists the entries of a key in their order until each expires or is removed', async (t) => {
    const [index, key] = [await store.openIndex(), fresh()]
    const expiresAt = soon()
    const soonGone = Date.now() + 1000
    t.equal(await index.add(key, { id: 'a', value: 'one', expiresAt: soonGone }, 0), 1)
    t.equal(await index.add(key, { id: 'b', value: 'two', expiresAt }, 0), 2)
    const added = await Promise.all(['c', 'd'].map((id) => index.add(key, { id, value: id, expiresAt }, 0)))
    t.same(added, [3, 4])
    t.match(
      await (await store.openIndex()).list(key),
      ['a', 'b', 'c', 'd'].map((id) => ({ id })),
    )
    while ((await index.list(key)).length === 4) await new Promise((resolve) => void setTimeout(resolve, 5))
    t.match((await index.list(key))[0], { id: 'b', value: 'two', expiresAt })
    t.equal(await index.add(key, { id: 'e', value: 'e', expiresAt }, 0), 4, 'the expired entry does not count')
    const times = (await index.list(key)).map(({ addedAt }) => addedAt)
    t.same(
      times,
      [...new Set(times)].toSorted((one, other) => one - other),
      'no two have the same place',
    )
    await index.remove(key, ['b', 'c', 'missing'])
    await index.remove(key, [])
    t.match(await index.list(key), exactly({ id: 'd' }, { id: 'e' }))
    t.same(await index.list(fresh()), [])
  })

  await t.test('an index adds an entry after one of another key, whatever the time', async (t) => {
    const [index, key] = [await store.openIndex(), fresh()]
    const entry = { value: 'v', expiresAt: soon() }
    const later = Date.now() + 3_600_000
    await index.add(key, { id: 'a', ...entry }, later)
    await index.add(key, { id: 'b', ...entry }, later - 60_000)
    t.match(await index.list(key), exactly({ id: 'a', addedAt: later + 1 }, { id: 'b', addedAt: later + 2 }))
  })

  await t.test('an index tells an entry that is ended from one that was added later', async (t) => {
    const [index, key] = [await store.openIndex(), fresh()]
    const entry = { value: 'v', expiresAt: soon() }
    await index.add(key, { id: 'a', ...entry }, 0)
    await index.add(key, { id: 'b', ...entry }, 0)
    const none = { issued: -Infinity, sidless: -Infinity }
    t.same(await index.look(key, 'a'), { isListed: true, endedAgoMs: undefined, endedUntil: none })
    await index.end(key, ['a', 'missing'])
    await index.end(key, ['a'])
    t.match(await index.look(key, 'a'), { isListed: false })
    t.match(await index.look(key, 'missing'), { isListed: false })
    t.match(await index.look(key, 'b'), { isListed: true })
    t.match(await index.list(key), exactly({ id: 'a', value: 'v' }, { id: 'b' }), 'both are there to be removed')
    t.match(await index.endAll(key), exactly({ id: 'a' }, { id: 'b' }))
    await index.add(key, { id: 'c', ...entry }, 0)
    const { isListed, endedAgoMs = Infinity } = await index.look(key, 'c')
    t.ok(isListed && endedAgoMs >= 0 && endedAgoMs < 60_000)
    const unknown = fresh()
    t.same(await index.endAll(unknown), [])
    t.match((await index.look(unknown, 'a')).endedAgoMs, Number, 'also where there was no entry yet')
  })

  await t.test('an index remembers until when those were issued that are ended, and never less', async (t) => {
    const [index, key] = [await store.openIndex(), fresh()]
    await index.add(key, { id: 'a', value: 'v', expiresAt: soon() }, 0)
    t.match(await index.endIssued(key, 'issued', 1_700_000_000.5), exactly({ id: 'a' }))
    await index.endIssued(key, 'issued', 1_600_000_000)
    await index.endIssued(key, 'sidless', 5)
    await index.endIssued(key, 'sidless', 10)
    const { isListed, endedAgoMs, endedUntil } = await index.look(key, 'a')
    t.same([isListed, endedAgoMs, endedUntil], [true, undefined, { issued: 1_700_000_000.5, sidless: 10 }])
    t.match(await index.list(key), exactly({ id: 'a' }), 'none is removed')
    const unknown = fresh()
    t.same(await index.endIssued(unknown, 'issued', 7), [])
    t.match(await index.look(unknown, 'a'), { isListed: false, endedUntil: { issued: 7 } })
  })
}
