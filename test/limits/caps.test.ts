import { test } from 'tap'
import { Caps } from '../../src/limits/caps.ts'
import { Permits, type Release } from '../../src/limits/permits.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'

const LIMITS = {
  maxRelays: 10,
  maxPerSession: 2,
  maxSessionSockets: 3,
  maxSessionSocketsPerIp: 4,
  maxPublicPerIp: 1,
  publicHandshakesPerMinute: 2,
}

const caps = () => new Caps(LIMITS, new MemoryStore())

/** How many permits there are. */
function count(acquire: () => Release | undefined): number {
  let permits = 0
  while (acquire() !== undefined) permits++
  return permits
}

/** A hundred addresses. */
const many = (address: (index: number) => string): string[] => Array.from({ length: 100 }, (_, index) => address(index))

await test('each kind of socket has as many permits as its limit, and each user and network its own', (t) => {
  const own = caps()
  t.equal(
    count(() => own.acquireProcess()),
    10,
  )
  t.equal(
    count(() => own.acquireUnreserved()),
    8,
    'all but a quarter, rounded down',
  )
  for (const name of ['one', 'other']) {
    t.equal(
      count(() => own.acquireSessionSocket(name)),
      3,
    )
  }
  for (const [name, same] of [
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.2', '192.0.2.2'],
    ['2001:db8::1', '2001:db8::2'],
  ] as const) {
    t.equal(
      count(() => own.acquireSessionSocketAt(name)),
      4,
    )
    t.equal(own.acquireSessionSocketAt(same), undefined)
    t.equal(
      count(() => own.acquireAddress(name)),
      1,
    )
    t.equal(own.acquireAddress(same), undefined)
  }
  for (const session of ['one', 'other']) {
    t.equal(
      count(() => own.acquireOpening(session)),
      8,
      'four times those that may be open',
    )
  }
  t.equal(own.acquireProcess(), undefined, 'no kind takes or gives back those of another')
  t.end()
})

await test('a permit that is given back, once or twice, is one permit', (t) => {
  const own = caps()
  const [one, two] = [own.acquireSessionSocket('one'), own.acquireSessionSocket('one')]
  own.acquireSessionSocket('one')
  one?.()
  one?.()
  t.ok(own.acquireSessionSocket('one'))
  t.equal(own.acquireSessionSocket('one'), undefined)
  two?.()
  t.ok(own.acquireSessionSocket('one'))
  t.end()
})

await test('a session has its permits, and so has another', async (t) => {
  const own = caps()
  for (const key of ['key', 'another']) {
    t.ok(await own.acquireSession(key))
    t.ok(await own.acquireSession(key))
    t.equal(await own.acquireSession(key), undefined)
  }
})

await test('a network has its handshakes of a minute', (t) => {
  const own = caps()
  t.same(
    ['2001:db8::1', '2001:db8::2', '2001:db8::3', '192.0.2.1'].map((address) => own.allowsHandshake(address)),
    [true, true, false, true],
  )
  t.ok(own.handshakeSecondsLeft > 0 && own.handshakeSecondsLeft <= 60)
  t.end()
})

await test('an IPv6 client has four times as many permits and handshakes in its /56, and 16 times in its /48', (t) => {
  for (const [addresses, factor] of [
    [many((index) => `2001:db8:1:${index.toString(16)}::1`), 4],
    [many((index) => `2001:db8:1:${index.toString(16)}00::1`), 16],
  ] as const) {
    const own = caps()
    const taken = addresses.flatMap((address) => own.acquireAddress(address) ?? [])
    t.equal(taken.length, factor * LIMITS.maxPublicPerIp)
    const inSessions = addresses.filter((address) => own.acquireSessionSocketAt(address))
    t.equal(inSessions.length, factor * LIMITS.maxSessionSocketsPerIp)
    t.equal(
      addresses.filter((address) => own.allowsHandshake(address)).length,
      factor * LIMITS.publicHandshakesPerMinute,
    )
    taken[0]?.()
    taken[0]?.()
    t.ok(own.acquireAddress(addresses.at(-1) ?? ''), 'a refusal has taken nothing of this /64')
    t.equal(own.acquireAddress(addresses.at(-2) ?? ''), undefined)
  }
  t.end()
})

await test('permits that nobody has taken cannot be given back', (t) => {
  const permits = new Permits()
  permits.release('key')
  t.equal(permits.acquire('key', 1), true)
  t.equal(permits.acquire('key', 1), false)
  permits.release('key')
  t.equal(permits.acquire('key', 1), true)
  t.end()
})

await test('who waits for a permit gets one that is released, in turn, unless it is no longer wanted', async (t) => {
  const permits = new Permits()
  t.ok(permits.acquire('one', 1))
  const got: string[] = []
  const wait = (name: string, signal: AbortSignal): Promise<unknown> =>
    permits.waitFor('one', 1, signal).then((isTaken) => got.push(`${name} ${isTaken}`))
  const [first, second, wanted] = [new AbortController(), new AbortController(), new AbortController()]
  void wait('first', first.signal)
  void wait('second', second.signal)
  const third = wait('third', wanted.signal)
  t.ok(await permits.waitFor('other', 1, wanted.signal), 'another key has permits of its own')
  t.notOk(await permits.waitFor('other', 2, AbortSignal.abort()))
  second.abort()
  permits.release('one')
  first.abort()
  await third
  t.same(got, ['second false', 'first false', 'third true'])
  t.notOk(permits.acquire('one', 1))
  permits.release('one')
  t.ok(permits.acquire('one', 1), 'nobody waits any more')
})
