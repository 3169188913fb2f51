import type { Test } from 'tap'
import { besideKey } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/store.ts'
import { sharedLimitsContract } from './shared-limits-contract.ts'
import { indexContract } from './index-contract.ts'
import { ledgerContract } from './ledger-contract.ts'

let keys = 0
const fresh = (): string => `bff:1:contract:${++keys}`
const MINUTE_MS = 60_000
const soon = (): number => Date.now() + MINUTE_MS

/** The behaviour of a store that instances share. See {@link storeContract}. */
export async function sharedStoreContract(t: Test, open: () => Promise<Store>, isReplicated?: boolean): Promise<void> {
  await storeContract(t, open, isReplicated)
  await sharedLimitsContract(t, open)
  await ledgerContract(t, await open(), await open())
}

/**
 * The behaviour that every store must have.
 * @param open returns a new handle on the same store
 * @param isReplicated what the store reports for a new key; undefined without replicas
 */
export async function storeContract(t: Test, open: () => Promise<Store>, isReplicated?: boolean): Promise<void> {
  const store = await open()

  await t.test('create succeeds once, even for concurrent writers', async (t) => {
    const key = fresh()
    const tries = await Promise.all(['a', 'b', 'c', 'd'].map((value) => store.create(key, value, soon())))
    t.equal(tries.filter(Boolean).length, 1)
    t.equal(await store.create(key, 'later', soon()), false)
    const winner = ['a', 'b', 'c', 'd'][tries.indexOf(true)]
    t.equal((await store.read(key))?.value, winner)
  })

  await t.test('read, readUntracked and readMany return undefined for a missing key', async (t) => {
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

  await t.test('replace changes only the expected value, and never brings a removed key back', async (t) => {
    const key = fresh()
    await store.create(key, 'old', soon())
    t.equal(await store.replace(key, 'other', 'new', soon()), false)
    const winners = await Promise.all(['x', 'y', 'z'].map((value) => store.replace(key, 'old', value, soon())))
    t.equal(winners.filter(Boolean).length, 1, 'one of three writers wins')
    await store.remove(key)
    t.equal(await store.replace(key, 'old', 'back', soon()), false)
    t.equal(await store.read(key), undefined)
  })

  await t.test('a value may have any bytes, a character each', async (t) => {
    const all = String.fromCodePoint(...Array(256).keys())
    const [key, confirmedKey] = [fresh(), fresh()]
    const expiresAt = soon()
    t.ok(await store.create(key, `\u0002${all}`, expiresAt))
    t.same(await store.readUntracked(key), { value: `\u0002${all}`, expiresAt })
    t.notOk(await store.replace(key, all, 'text', expiresAt))
    t.ok(await store.replace(key, `\u0002${all}`, all, expiresAt))
    t.notOk(await store.removeIf(key, `\u0002${all}`))
    t.ok(await store.removeIf(key, all))
    const confirmed = await store.openConfirmed(isReplicated === true ? 1 : 0)
    t.ok(await confirmed.create(confirmedKey, all, expiresAt))
    t.ok(await confirmed.replace(confirmedKey, all, `${all}!`, expiresAt))
    t.same(await store.readUntracked(confirmedKey), { value: `${all}!`, expiresAt })
  })

  await t.test('extend moves an expiry later, never earlier, and revives no key', async (t) => {
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

  await t.test('remove succeeds once, and removeIf removes only the expected value', async (t) => {
    const key = fresh()
    await store.create(key, 'mine', soon())
    t.equal(await store.removeIf(key, 'yours'), false)
    t.equal(await store.removeIf(key, 'mine'), true)
    t.equal(await store.removeIf(key, 'mine'), false)
    await store.create(key, 'again', soon())
    t.same([await store.remove(key), await store.remove(key)], [true, false])
  })

  await t.test('a key expires at its time', async (t) => {
    const key = fresh()
    await store.create(key, 'short', Date.now() + 40)
    while ((await store.read(key)) !== undefined) await new Promise((resolve) => void setTimeout(resolve, 5))
    t.equal(await store.create(key, 'again', soon()), true)
  })

  await t.test('staleMs says for how long a value may be used', async (t) => {
    t.ok(store.staleMs === Infinity || store.staleMs <= 1000)
  })
  await t.test('isReplicated says whether a replica has the key, undefined without replicas', async (t) => {
    const key = fresh()
    await store.create(key, 'v', soon())
    t.equal(await store.isReplicated(key), isReplicated)
  })
  await t.test('count starts at zero and does not move the expiry', async (t) => {
    const key = fresh()
    t.equal(await store.count(key, 3, MINUTE_MS), 3)
    const first = await store.read(key)
    t.equal(first?.value, '3')
    t.equal(await store.count(key, 1, MINUTE_MS + 5000), 4)
    t.same(await store.read(key), { ...first, value: '4' })
    const counts = await Promise.all([1, 2, 3].map(() => store.count(key, 1, MINUTE_MS)))
    t.same(new Set(counts), new Set([5, 6, 7]))
  })
  await t.test('replace succeeds again for whoever has not heard of it', async (t) => {
    const key = fresh()
    await store.create(key, 'old', soon())
    t.same(
      [await store.replace(key, 'old', 'mine', soon()), await store.replace(key, 'old', 'mine', soon())],
      [true, true],
    )
    t.equal(await store.replace(key, 'old', 'yours', soon()), false)
    t.equal((await store.read(key))?.value, 'mine')
  })
  await t.test('lock succeeds for one owner, and for that one again, until removeIf releases it', async (t) => {
    const key = fresh()
    const tries = await Promise.all([1, 2, 3].map((owner) => store.lock(key, `${owner}`, MINUTE_MS)))
    t.equal(tries.filter(Boolean).length, 1)
    const [owner = ''] = await store.readMany([key])
    t.equal(await store.lock(key, owner, 2 * MINUTE_MS), true, 'its owner may not have heard of it')
    t.ok(Number((await store.read(key))?.expiresAt) > soon() + 1000, 'and has it for as long as asked')
    t.equal(await store.lock(key, 'another', MINUTE_MS), false)
    t.equal(await store.removeIf(key, 'another'), false)
    t.equal(await store.removeIf(key, owner), true)
    t.equal(await store.lock(key, 'another', MINUTE_MS), true)
  })
  await t.test(
    'bury removes a key once, leaves what it was until somebody replaces that, and does nothing to a missing key',
    async (t) => {
      const key = fresh()
      const tombstone = {
        key: besideKey(key, 'tombstone'),
        leftKey: besideKey(key, 'left'),
        value: 'logout',
        expiresAt: soon(),
      }
      t.equal(await store.bury(key, tombstone), undefined)
      t.same(await store.readMany([tombstone.key, tombstone.leftKey]), [undefined, undefined])
      await store.create(key, 'v', soon())
      const again = { ...tombstone, value: 'refused' }
      t.same([await store.bury(key, tombstone), await store.bury(key, again)], ['logout v', 'logout v'])
      t.equal(await store.read(key), undefined)
      t.same(await store.readUntracked(tombstone.key), { value: 'logout', expiresAt: tombstone.expiresAt })
      const left = await store.readUntracked(tombstone.leftKey)
      t.ok(Math.abs(Number(left?.expiresAt) - soon()) < 2000, 'for a minute by the clock of the store')
      t.equal(await store.replace(tombstone.leftKey, 'logout v', 'somebody', soon()), true)
      t.equal(await store.bury(key, tombstone), 'somebody')
    },
  )

  await t.test('readMarked reads a value unless the caller knows the mark with which it begins', async (t) => {
    const key = fresh()
    t.match(await store.readMarked(key, 'mark'), { isKnown: false, value: undefined, now: Number })
    await store.create(key, 'mark text', soon())
    for (const mark of ['', 'other', 'mar', 'mark text'])
      t.match(await store.readMarked(key, mark), { isKnown: false, value: 'mark text' }, mark)
    t.match(await store.readMarked(key, 'mark'), { isKnown: true, value: undefined })
  })

  await indexContract(t, store)

  await t.test('the store is available', async (t) => {
    t.equal(store.unavailableSince(), undefined)
    t.ok(store.availableForMs('k') > 0)
  })
  if (store.staleMs !== Infinity) return

  await t.test('onChange announces an expired key', async (t) => {
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

  await t.test('onChange announces changes of another handle', async (t) => {
    const other = await open()
    const key = fresh()
    await store.create(key, 'v', soon())
    for (const change of [
      () => other.replace(key, 'v', 'w', soon()),
      () => other.extend(key, soon() + 5000),
      () => other.remove(key),
    ]) {
      await store.read(key)
      const announced = new Promise<void>((resolve) => {
        store.onChange((name) => {
          if (name === key) resolve()
        })
      })
      await change()
      await announced
      t.pass('the change is announced')
    }
  })
  await t.test('onChange announces a change of a key that is read just after none was', async (t) => {
    const other = await open()
    const key = fresh()
    await store.create(key, 'v', soon())
    const announced = new Promise<void>((resolve) => {
      store.onChange((name) => {
        if (name === key) resolve()
      })
    })
    await Promise.all([store.readMany([]), store.read(key)])
    await other.remove(key)
    await announced
    t.pass('the change is announced')
  })
}
