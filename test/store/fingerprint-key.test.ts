import { test } from 'tap'
import { FingerprintKey } from '../../src/store/fingerprint-key.ts'
import { FINGERPRINT_KEY } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

const TEN_YEARS_MS = 10 * 365 * 86_400_000

await test('the instances of a store have one random value in common, which is made once and stays', async (t) => {
  const store = new MemoryStore()
  const [one, other] = await Promise.all([new FingerprintKey(store).read(), new FingerprintKey(store).read()])
  t.match(one, /^[\w-]{43}$/)
  t.equal(other, one)
  const { value, expiresAt = 0 } = (await store.read(FINGERPRINT_KEY)) ?? {}
  t.equal(value, one)
  t.ok(Math.abs(expiresAt - Date.now() - TEN_YEARS_MS) < 60_000)
  t.not(await new FingerprintKey(new MemoryStore()).read(), one)
})

await test('the store is asked each time, once for all who ask together, and its last answer holds while it has none', async (t) => {
  const found: (string | Error | undefined)[] = ['first', 'second', new Error('away'), undefined, 'other']
  let asked = 0
  let created = 0
  const key = new FingerprintKey({
    readUntracked: async () => {
      asked++
      const next = found.shift()
      if (next instanceof Error) throw next
      return next === undefined ? undefined : { value: next, expiresAt: Infinity }
    },
    create: async () => {
      created++
      return false
    },
  })
  t.same(await Promise.all([key.read(), key.read()]), ['first', 'first'])
  t.equal(asked, 1)
  t.equal(await key.read(), 'second')
  t.equal(await key.read(), 'second', 'while the store is away')
  t.equal(created, 0)
  t.equal(await key.read(), 'other', 'another instance was faster')
  t.equal(created, 1)
})

await test('nobody waits longer than a quarter of a second for a store that does not answer', async (t) => {
  const limit = new HeldTimers(t, 'setTimeout', 250)
  const key = new FingerprintKey({ readUntracked: () => new Promise(() => undefined), create: async () => true })
  const read = key.read()
  t.equal(limit.size, 1)
  limit.run()
  t.equal(await read, undefined)
})

await test('a store that takes no writes has no random value, and nothing fails', async (t) => {
  const key = new FingerprintKey({
    readUntracked: async () => undefined,
    create: () => Promise.reject(new Error('OOM')),
  })
  t.equal(await key.read(), undefined)
})
