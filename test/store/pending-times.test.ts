import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { PendingWrites } from '../../src/store/pending-writes.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { within } from '../support/time/until.ts'

/** A store whose link says something only when a test does. */
class QuietLink {
  downSince: number | undefined
  tell: (key: string | undefined) => void = () => undefined

  onChange(listener: (key: string | undefined) => void): void {
    this.tell = listener
  }

  unavailableSince(): number | undefined {
    return this.downSince
  }
}

const done = async (): Promise<void> => undefined

await test('a pending write is tried every quarter of a second until it succeeds, and then nothing is', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const link = new QuietLink()
  const pending = new PendingWrites(link)
  let tried = 0
  const write = async (): Promise<void> => {
    if (++tried < 3) throw new StoreUnavailable(new Error('away'))
  }
  pending.add({ write, bytes: 1, until: Infinity })
  link.downSince = 1
  for (const expected of [0, 1, 2, 3]) {
    t.equal(retries.size, 1)
    retries.run()
    await setImmediate()
    t.equal(tried, expected)
    link.downSince = undefined
  }
  t.equal(retries.size, 0)
})

await test('a write that takes its time is not tried again meanwhile, and others have their turn after it', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const pending = new PendingWrites(new QuietLink())
  const slow = Promise.withResolvers<void>()
  const tried: string[] = []
  const add = (name: string, write: Promise<void>): boolean =>
    pending.add({
      write: () => {
        tried.push(name)
        return write
      },
      bytes: 1,
      until: Infinity,
    })
  add('slow', slow.promise)
  retries.run()
  add('next', done())
  retries.run()
  t.same(tried, ['slow'])
  slow.resolve()
  await setImmediate()
  t.same(tried, ['slow', 'next'])
})

await test('a write that has become pointless is dropped untried, which its owner is told, and makes room', async (t) => {
  let now = 1_000_000
  t.intercept(Date, 'now', { value: () => now })
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const link = new QuietLink()
  link.downSince = 1
  const pending = new PendingWrites(link)
  const events: string[] = []
  const add = (): boolean =>
    pending.add({
      write: async () => void events.push('tried'),
      bytes: 16_777_216,
      until: 1_000_100,
      onDropped: () => events.push('dropped'),
    })
  t.ok(add(), '16 MiB')
  t.notOk(pending.add({ write: done, bytes: 1, until: Infinity }), 'and a byte')
  now += 99
  retries.run()
  await setImmediate()
  t.same(events, [])
  now += 1
  retries.run()
  await setImmediate()
  t.same(events, ['dropped'])
  t.equal(retries.size, 0)
  t.ok(add(), 'its bytes are free')
})

await test('a write in place of another takes its memory, and is tried although the other one succeeds meanwhile', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const link = new QuietLink()
  const pending = new PendingWrites(link)
  const first = Promise.withResolvers<void>()
  const tried: string[] = []
  const add = (what: string, written: Promise<void>): boolean =>
    pending.add({
      write: () => (tried.push(what), written),
      bytes: 16_777_216,
      until: Infinity,
      name: 'a name',
    })
  t.ok(add('first', first.promise))
  retries.run()
  link.downSince = 1
  t.ok(add('second', done()), 'their bytes together are too many')
  first.resolve()
  await setImmediate()
  link.downSince = undefined
  retries.run()
  await setImmediate()
  t.same(tried, ['first', 'second'])
})

await test('who waits until all is written waits for each write, and no longer', async (t) => {
  const link = new QuietLink()
  link.downSince = 1
  const pending = new PendingWrites(link)
  pending.add({ write: done, bytes: 1, until: Infinity })
  let isOver = false
  const written = pending.written().finally(() => (isOver = true))
  await setImmediate()
  t.equal(isOver, false)
  link.downSince = undefined
  link.tell(undefined)
  await within(written, 'all is written')
})

await test('a pointless write that nobody waits for keeps none from its turn', async (t) => {
  const pending = new PendingWrites(new QuietLink())
  let written = 0
  pending.add({ write: async () => void t.fail('tried'), bytes: 1, until: Date.now() - 1 })
  pending.add({ write: async () => void written++, bytes: 1, until: Infinity })
  await pending.close()
  t.equal(written, 1)
})

await test('a link that is back has all tried at once, in place of the next try; news of one key has nothing tried', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const link = new QuietLink()
  const pending = new PendingWrites(link)
  let tried = 0
  const write = async (): Promise<void> => {
    tried++
    throw new StoreUnavailable(new Error('away'))
  }
  pending.add({ write, bytes: 1, until: Infinity })
  link.tell('session:a')
  t.equal(tried, 0)
  link.tell(undefined)
  t.equal(tried, 1)
  await setImmediate()
  t.equal(retries.size, 1)
})

await test('no more than 10,000 writes are pending', async (t) => {
  const link = new QuietLink()
  link.downSince = 1
  const pending = new PendingWrites(link)
  const add = (): boolean => pending.add({ write: done, bytes: 0, until: Infinity })
  t.equal(Array.from({ length: 10_001 }, add).filter(Boolean).length, 10_000)
  await pending.close()
  t.ok(add(), 'what was closed is forgotten')
  await pending.close()
})

await test('what cannot be undone yet is undone 5 seconds later, once, for a write that comes late', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const late = new HeldTimers(t, 'setTimeout', 5000)
  for (const found of [true, false]) {
    const pending = new PendingWrites(new QuietLink())
    let undone = 0
    const undo = async (): Promise<boolean> => {
      if (++undone > 1) throw new StoreUnavailable(new Error('away'))
      return found
    }
    pending.undo(undo, Infinity)
    retries.run()
    await setImmediate()
    t.equal(undone, 1)
    t.equal(late.size, Number(!found))
    late.run()
    await setImmediate()
    t.equal(undone, found ? 1 : 2)
    t.equal(late.size, 0)
    t.equal(retries.size, 0)
  }
})
