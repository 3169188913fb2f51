import type { Test } from 'tap'
import { tombstoneKey } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/store.ts'

let keys = 0
const fresh = (): string => `contract:${++keys}`
const soon = (): number => Date.now() + 60_000

/**
 * The behaviour that every store must have.
 * @param open returns a new handle on the same store
 * @param isReplicated what the store reports for a new key; undefined without replicas
 */
export async function storeContract(
  t: Test,
  open: () => Promise<Store>,
  isReplicated?: boolean,
): Promise<void> {
  const store = await open()

  await t.test('creates a key once, also of many at the same moment', async (t) => {
    const key = fresh()
    const tries = await Promise.all(['a', 'b', 'c', 'd'].map((value) => store.create(key, value, soon())))
    t.equal(tries.filter(Boolean).length, 1)
    t.equal(await store.create(key, 'later', soon()), false)
    const winner = ['a', 'b', 'c', 'd'][tries.indexOf(true)]
    t.equal((await store.read(key))?.value, winner)
  })

  await t.test('reads value and expiry, several in order, and nothing of what is not there', async (t) => {
    const [one, two] = [fresh(), fresh()]
    const expiresAt = soon()
    await store.create(one, '1', expiresAt)
    await store.create(two, '2', expiresAt)
    t.same(await store.read(one), { value: '1', expiresAt })
    t.equal(await store.read(fresh()), undefined)
    t.same(await store.readUntracked(two), { value: '2', expiresAt })
    t.equal(await store.readUntracked(fresh()), undefined)
    t.same(await store.readMany([two, fresh(), one]), ['2', undefined, '1'])
    t.same(await store.readMany([]), [])
  })

  await t.test('replaces only the value that was read, and never brings a removed key back', async (t) => {
    const key = fresh()
    await store.create(key, 'old', soon())
    t.equal(await store.replace(key, 'other', 'new', soon()), false)
    const winners = await Promise.all(
      ['x', 'y', 'z'].map((value) => store.replace(key, 'old', value, soon())),
    )
    t.equal(winners.filter(Boolean).length, 1, 'one of three writers wins')
    await store.remove(key)
    t.equal(await store.replace(key, 'old', 'back', soon()), false)
    t.equal(await store.read(key), undefined)
  })

  await t.test('moves an expiry later, never earlier, and revives nothing', async (t) => {
    const key = fresh()
    const expiresAt = soon()
    await store.create(key, 'v', expiresAt)
    await store.extend(key, expiresAt + 1000)
    t.equal((await store.read(key))?.expiresAt, expiresAt + 1000)
    await store.extend(key, expiresAt - 1000)
    t.equal((await store.read(key))?.expiresAt, expiresAt + 1000)
    const gone = fresh()
    await store.extend(gone, soon())
    t.equal(await store.read(gone), undefined)
  })

  await t.test('removes once, and conditionally only what is expected', async (t) => {
    const key = fresh()
    await store.create(key, 'mine', soon())
    t.equal(await store.removeIf(key, 'yours'), false)
    t.equal(await store.removeIf(key, 'mine'), true)
    t.equal(await store.removeIf(key, 'mine'), false)
    await store.create(key, 'again', soon())
    t.same([await store.remove(key), await store.remove(key)], [true, false])
  })

  await t.test('forgets a key when its time has come', async (t) => {
    const key = fresh()
    await store.create(key, 'short', Date.now() + 40)
    while ((await store.read(key)) !== undefined) await new Promise((resolve) => void setTimeout(resolve, 5))
    t.equal(await store.create(key, 'again', soon()), true)
  })

  await t.test('says for how long a value may be relied on', async (t) => {
    t.ok(store.staleMs === Infinity || store.staleMs <= 1000)
  })
  await t.test('knows whether a replica has it, if there are any', async (t) => {
    const key = fresh()
    await store.create(key, 'v', soon())
    t.equal(await store.isReplicated(key), isReplicated)
  })
  await t.test('counts from nothing until its time has come, without moving it', async (t) => {
    const key = fresh()
    const until = Date.now() + 60_000
    t.equal(await store.count(key, 3, until), 3)
    t.equal(await store.count(key, 1, until + 5000), 4)
    t.same(await store.read(key), { value: '4', expiresAt: until })
    const counts = await Promise.all([1, 2, 3].map(() => store.count(key, 1, until)))
    t.same(new Set(counts), new Set([5, 6, 7]))
  })
  await t.test('locks what is not locked, once, until it is given back', async (t) => {
    const key = fresh()
    t.equal(
      (await Promise.all([1, 2, 3].map((owner) => store.lock(key, `${owner}`, soon())))).filter(Boolean)
        .length,
      1,
    )
    const [owner = ''] = await store.readMany([key])
    t.equal(await store.removeIf(key, owner), true)
    t.equal(await store.lock(key, 'another', soon()), true)
  })
  await t.test('buries what is there, once, and puts no tombstone where nothing was', async (t) => {
    const key = fresh()
    const tombstone = { key: tombstoneKey(key), value: 'logout', expiresAt: soon() }
    t.equal(await store.bury(key, tombstone), undefined)
    t.equal(await store.readUntracked(tombstone.key), undefined)
    await store.create(key, 'v', soon())
    const buried = await Promise.all([store.bury(key, tombstone), store.bury(key, tombstone)])
    t.same(new Set(buried), new Set(['v', undefined]))
    t.equal(await store.read(key), undefined)
    t.same(await store.readUntracked(tombstone.key), { value: 'logout', expiresAt: tombstone.expiresAt })
  })

  await t.test('is there', async (t) => t.equal(store.unavailableSince(), undefined))
  if (store.staleMs !== Infinity) return

  await t.test('says that a key has expired', async (t) => {
    const key = fresh()
    await store.create(key, 'short', Date.now() + 40)
    await store.read(key)
    const changed = new Promise<void>((resolve) => {
      store.onChange((name) => {
        if (name === key) resolve()
      })
    })
    // A read notices the expiry at the latest.
    while ((await store.read(key)) !== undefined) await new Promise((resolve) => void setTimeout(resolve, 5))
    await changed
    t.pass('the change is announced')
  })

  await t.test('tells of changes made through another handle', async (t) => {
    const other = await open()
    const key = fresh()
    await store.create(key, 'v', soon())
    for (const change of [
      () => other.replace(key, 'v', 'w', soon()),
      () => other.extend(key, soon() + 5000),
      () => other.remove(key),
    ]) {
      await store.read(key)
      const heard = new Promise<void>((resolve) => {
        store.onChange((name) => {
          if (name === key) resolve()
        })
      })
      await change()
      await heard
      t.pass('the change is announced')
    }
  })
}
