import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { PendingWrites } from '../../src/store/pending-writes.ts'
import { StoreUnavailable, unlessAway } from '../../src/store/store.ts'

/** A link to a store that comes and goes. */
class Link {
  downSince: number | undefined = 1
  #listener: (key: string | undefined) => void = () => undefined

  onChange(listener: (key: string | undefined) => void): void {
    this.#listener = listener
  }

  unavailableSince(): number | undefined {
    return this.downSince
  }

  /** Says that the link has changed, as a store does. */
  report(downSince: number | undefined): void {
    this.downSince = downSince
    this.#listener(undefined)
  }
}

const later = { bytes: 1, until: Infinity }

await test('a write that is pending is repeated at once when the link is back', async (t) => {
  const link = new Link()
  const pending = new PendingWrites(link)
  let count = 0
  pending.add({ ...later, write: async () => void count++ })
  link.report(2)
  t.equal(count, 0)
  link.report(undefined)
  t.equal(count, 1, 'before anything else happens in this process')
})

await test('a write for which the store is away again stays pending until it succeeds', async (t) => {
  const link = new Link()
  const pending = new PendingWrites(link)
  let count = 0
  const write = async (): Promise<void> => {
    if (count++ === 0) throw new StoreUnavailable(new Error('away'))
  }
  pending.add({ ...later, write })
  for (const expected of [1, 2, 2]) {
    link.report(undefined)
    await setImmediate()
    t.equal(count, expected)
    link.report(1)
  }
})

await test('only a store that is away is no answer: any other fault is thrown', async (t) => {
  t.equal(await unlessAway(Promise.resolve('an answer')), 'an answer')
  t.equal(await unlessAway(Promise.reject(new StoreUnavailable(new Error('away')))), undefined)
  await t.rejects(unlessAway(Promise.reject(new TypeError('a fault'))), { name: 'TypeError' })
})

await test('what is pending at the end is tried once more if the store is available', async (t) => {
  for (const downSince of [undefined, 1]) {
    const link = new Link()
    const pending = new PendingWrites(link)
    let count = 0
    pending.add({ ...later, write: async () => void count++ })
    link.downSince = downSince
    await pending.close()
    t.equal(count, downSince === undefined ? 1 : 0)
    link.report(undefined)
    t.equal(count, downSince === undefined ? 1 : 0, 'and then it is forgotten')
  }
})

await test('writes that were done make room for others: 10 MB twice, one after the other', async (t) => {
  const link = new Link()
  const pending = new PendingWrites(link)
  for (const each of ['first', 'second']) {
    link.report(1)
    let isDone = false
    const write = async (): Promise<void> => void (isDone = true)
    t.ok(pending.add({ write, bytes: 10_000_000, until: Infinity }), each)
    t.notOk(pending.add({ write, bytes: 10_000_000, until: Infinity }), 'no more than 16 MiB at the same time')
    link.report(undefined)
    await setImmediate()
    t.ok(isDone)
  }
})

await test('a write that fails for another reason is not repeated, and keeps no other from its turn', async (t) => {
  const link = new Link()
  link.downSince = undefined
  const pending = new PendingWrites(link)
  const tried: string[] = []
  const add = (name: string, error?: Error): boolean => {
    const write = async (): Promise<void> => {
      tried.push(name)
      if (error !== undefined) throw error
    }
    return pending.add({ ...later, write })
  }
  add('faulty', new TypeError('a fault'))
  add('next')
  await t.rejects(pending.close(), { name: 'TypeError' })
  await pending.close()
  t.same(tried, ['faulty', 'next'])
})

await test('of writes with one name the latest is made, once', async (t) => {
  const link = new Link()
  const pending = new PendingWrites(link)
  const made: string[] = []
  const add = (name: string, what: string): boolean =>
    pending.add({ ...later, name, write: async () => void made.push(what) })
  for (const what of ['a', 'b', 'c']) t.ok(add('one', what))
  t.ok(add('other', 'd'))
  link.report(undefined)
  await setImmediate()
  t.same(made, ['c', 'd'])
  link.report(1)
  t.ok(add('one', 'e'))
  link.report(undefined)
  await setImmediate()
  t.same(made, ['c', 'd', 'e'])
})

await test('a write for which one master gives no reply holds up no other', async (t) => {
  const link = new Link()
  const pending = new PendingWrites(link)
  let count = 0
  for (let each = 0; each < 10; each++) pending.add({ ...later, write: () => new Promise(() => undefined) })
  pending.add({ ...later, write: async () => void count++ })
  link.report(undefined)
  await setImmediate()
  t.equal(count, 1)
})
