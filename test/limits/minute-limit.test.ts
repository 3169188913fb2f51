import { test } from 'tap'
import { MinuteLimit } from '../../src/limits/minute-limit.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'

const MINUTE_MS = 60_000

/** A store that counts what it is asked. */
class CountingStore extends MemoryStore {
  asked = 0
  isEvenWhenFull: boolean | undefined

  override count(...args: Parameters<MemoryStore['count']>): ReturnType<MemoryStore['count']> {
    this.asked++
    this.isEvenWhenFull = args[3]
    return super.count(...args)
  }
}

await test('a limit of a minute holds over all instances, by key, and says how long is left', async (t) => {
  const store = new MemoryStore()
  const [one, other] = [new MinuteLimit(store, 3), new MinuteLimit(store, 3)]
  for (const limit of [one, other, one]) t.equal(await limit.waitMs('CR1'), undefined)
  for (const limit of [one, other]) {
    const leftMs = (await limit.waitMs('CR1')) ?? 0
    t.ok(leftMs > MINUTE_MS / 2 && leftMs <= MINUTE_MS, `${leftMs} ms`)
  }
  t.equal(await one.waitMs('CR2'), undefined)
})

for (const minutes of [-10, 10]) {
  await test(`a clock that differs from that of the store by ${minutes} minutes makes nobody wait for longer than one`, async (t) => {
    const store = new MemoryStore()
    const limit = new MinuteLimit(store, 1)
    t.equal(await limit.waitMs('CR1'), undefined)
    const read = store.readUntracked.bind(store)
    store.readUntracked = async (key) => {
      const stored = await read(key)
      return stored && { ...stored, expiresAt: stored.expiresAt - minutes * MINUTE_MS }
    }
    t.equal(await limit.waitMs('CR1'), MINUTE_MS)
  })
}

await test('once a limit is reached, asking again costs the store nothing, until the minute is over', async (t) => {
  let now = Date.now()
  const store = new CountingStore()
  const limit = new MinuteLimit(store, 1)
  t.equal(await limit.waitMs('CR1'), undefined)
  t.ok(await limit.waitMs('CR1'))
  const { asked } = store
  t.ok(store.isEvenWhenFull, 'a full store lets nobody exceed it')
  for (let times = 0; times < 100; times++) t.ok(((await limit.waitMs('CR1')) ?? 0) > 0)
  t.equal(store.asked, asked)
  t.intercept(Date, 'now', { value: () => now })
  t.intercept(performance, 'now', { value: () => now })
  now += MINUTE_MS + 1
  t.equal(await limit.waitMs('CR1'), undefined)
})

await test('whoever is over a limit waits for the rest of its minute, which may be over by now', async (t) => {
  let now = 1_000_000
  t.intercept(Date, 'now', { value: () => now })
  const store = new MemoryStore()
  t.equal(await new MinuteLimit(store, 1).waitMs('CR1'), undefined)
  now += 20_000
  t.equal(await new MinuteLimit(store, 1).waitMs('CR1'), 40_000)
  store.readUntracked = async () => ({ value: '3', expiresAt: now })
  t.equal(await new MinuteLimit(store, 1).waitMs('CR1'), MINUTE_MS, 'as with a clock that is wrong')
  store.readUntracked = async () => undefined
  t.equal(await new MinuteLimit(store, 1).waitMs('CR1'), 1)
})

await test('a limit of a minute rejects while the store is away', async (t) => {
  const store = new MemoryStore()
  store.count = () => Promise.reject(new StoreUnavailable('planted'))
  await t.rejects(new MinuteLimit(store, 1).waitMs('CR1'), StoreUnavailable)
})
