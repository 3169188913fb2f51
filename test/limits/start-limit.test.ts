import { test } from 'tap'
import { StartLimit } from '../../src/limits/start-limit.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'

/** How many of these starts are allowed. */
async function allowed(limit: StartLimit, addresses: readonly string[]): Promise<number> {
  let count = 0
  for (const address of addresses) if (await limit.allows(address)) count++
  return count
}

const addresses = (count: number, address: (index: number) => string): string[] =>
  Array.from({ length: count }, (_, index) => address(index))

const pair = (): StartLimit => new StartLimit(new MemoryStore(), 2)

await test('starts count by address on all instances, and a heavy one counts as several', async (t) => {
  const store = new MemoryStore()
  const [one, other] = [new StartLimit(store, 4), new StartLimit(store, 4)]
  t.same(
    [await one.allows('192.0.2.1', 3), await other.allows('192.0.2.1'), await one.allows('192.0.2.1')],
    [true, true, false],
  )
  t.ok(await other.allows('192.0.2.2'))
  t.equal(
    await allowed(
      new StartLimit(store, 0),
      addresses(9, () => '192.0.2.1'),
    ),
    9,
    '0 is no limit',
  )
})

await test('an IPv6 client has the limit for its /64, four times as much for its /56 and 16 times for its /48', async (t) => {
  t.equal(
    await allowed(
      pair(),
      addresses(9, (index) => `2001:db8:1:2::${index + 1}`),
    ),
    2,
  )
  t.equal(
    await allowed(
      pair(),
      addresses(20, (index) => `2001:db8:1:${index.toString(16)}::1`),
    ),
    8,
  )
  t.equal(
    await allowed(
      pair(),
      addresses(80, (index) => `2001:db8:1:${index.toString(16)}00::1`),
    ),
    32,
  )
})

await test('a client over its limit does not use up that of its neighbours', async (t) => {
  const limit = pair()
  await allowed(
    limit,
    addresses(50, () => '2001:db8:1:2::1'),
  )
  t.ok(await limit.allows('2001:db8:1:3::1'))
})

await test('each process counts on its own while the store is away', async (t) => {
  const store = new MemoryStore()
  store.count = () => Promise.reject(new StoreUnavailable('planted'))
  const limit = new StartLimit(store, 4)
  t.same(
    [await limit.allows('192.0.2.1', 3), await limit.allows('192.0.2.1', 2), await limit.allows('192.0.2.1')],
    [true, false, true],
  )
})
