import type { LookupAddress } from 'node:dns'
import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Names, type Peer } from '../../src/peers/names.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

const MINUTES = 60_000

/** A lookup of the system that has not ended. */
interface Lookup {
  readonly name: string
  readonly answers: (...addresses: string[]) => void
  readonly fails: (code: string) => void
}

/** Names that a test answers, and whose seconds pass when it says so. */
function namesOf(t: Test, places: number) {
  const running: Lookup[] = []
  const begun: string[] = []
  const late: unknown[] = []
  const names = new Names(places, (name, _options, answer) => {
    const end = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void => {
      running.splice(running.indexOf(lookup), 1)
      answer(error, addresses)
    }
    const lookup: Lookup = {
      name,
      answers: (...addresses) =>
        end(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        ),
      fails: (code) => end(Object.assign(new Error(code), { code }), []),
    }
    begun.push(name)
    running.push(lookup)
  })
  names.onLate = (...line) => void late.push(line)
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  return {
    names,
    begun,
    late,
    /** A running lookup of a name. */
    lookup: (name: string, which: 'oldest' | 'newest' = 'oldest'): Lookup => {
      const found = (which === 'oldest' ? running : running.toReversed()).find((each) => each.name === name)
      if (found === undefined) throw new Error(`no lookup of ${name} is running`)
      return found
    },
    running: () => running.map(({ name }) => name).sort(),
    aSecondPasses: async () => {
      seconds.run()
      await setImmediate()
    },
    /** What a caller gets, or the code of its error. */
    ask: (name: string, peer: Peer = 'other'): Promise<string> => {
      const { promise, resolve } = Promise.withResolvers<string>()
      names.for(peer)(name, { all: true, hints: 0 }, (error, addresses) => {
        const found = addresses as LookupAddress[]
        resolve(error?.code ?? found.map(({ address }) => address).join(' '))
      })
      return promise
    },
  }
}

await test('Whoever asks for the same name shares its lookup; a second one begins after a second, a third never', async (t) => {
  const { ask, begun, lookup, aSecondPasses } = namesOf(t, 8)
  const all = [ask('a'), ask('a', 'api'), ask('A')]
  t.same(begun, ['a'])
  await aSecondPasses()
  t.same(begun, ['a', 'a'], 'the first question may be lost on the way')
  await aSecondPasses()
  all.push(ask('a'))
  t.same(begun, ['a', 'a'])
  lookup('a').fails('EAI_AGAIN')
  lookup('a').answers('10.0.0.1')
  t.same(await Promise.all(all), Array(4).fill('10.0.0.1'), 'one that fails does not end the wait for the other')
  const next = ask('a')
  t.same(begun, ['a', 'a', 'a'], 'each later connection asks anew')
  lookup('a').answers('10.0.0.2')
  t.equal(await next, '10.0.0.2')
})

await test('The last good addresses serve after a second of waiting, until a newer answer is there', async (t) => {
  const { ask, begun, late, lookup, aSecondPasses } = namesOf(t, 8)
  const setAhead = clockAhead(t)
  const first = ask('a')
  lookup('a').answers('10.0.0.1')
  await first
  const waiting = ask('a')
  setAhead(9 * MINUTES)
  await aSecondPasses()
  t.equal(await waiting, '10.0.0.1')
  t.equal(await ask('a'), '10.0.0.1', 'nobody waits a second time')
  t.match(late, exactly(['a', Number]), 'it is told once')
  lookup('a').answers('10.0.0.2')
  t.ok(begun.length <= 3)
  await setImmediate()
  const fresh = ask('a')
  lookup('a').answers('10.0.0.3')
  lookup('a').answers('10.0.0.3')
  t.equal(await fresh, '10.0.0.3')
})

for (const [clock, ahead] of [
  ['the monotonic clock', clockAhead],
  ['the time of day', timeAhead],
] as const) {
  await test(`Addresses that are older than ten minutes by ${clock} do not serve`, async (t) => {
    const { ask, late, lookup, aSecondPasses } = namesOf(t, 8)
    const setAhead = ahead(t)
    const first = ask('a')
    lookup('a').answers('10.0.0.1')
    await first
    setAhead(11 * MINUTES)
    const waiting = ask('a')
    await aSecondPasses()
    t.same(late, [['a', undefined]])
    lookup('a').answers('10.0.0.2')
    t.equal(await waiting, '10.0.0.2')
  })
}

await test('Where no name server answers, the last good addresses serve; that a name does not exist is an answer', async (t) => {
  const { ask, late, lookup } = namesOf(t, 8)
  const first = ask('a')
  lookup('a').answers('10.0.0.1', '::1')
  t.equal(await first, '10.0.0.1 ::1')
  const second = ask('a')
  lookup('a').fails('EAI_AGAIN')
  t.equal(await second, '10.0.0.1 ::1')
  t.match(late, exactly(['a', Number]))
  const third = ask('a')
  lookup('a').fails('ENOTFOUND')
  t.equal(await third, 'ENOTFOUND')
  const other = ask('b')
  lookup('b').fails('EAI_AGAIN')
  t.equal(await other, 'EAI_AGAIN')
})

await test('Of two answers the one that was asked for later counts, whichever comes first', async (t) => {
  const { ask, lookup, aSecondPasses } = namesOf(t, 8)
  const first = ask('a')
  const early = lookup('a')
  await aSecondPasses()
  lookup('a', 'newest').answers('10.0.0.2')
  t.equal(await first, '10.0.0.2')
  early.answers('10.0.0.1')
  await setImmediate()
  const second = ask('a')
  lookup('a').fails('EAI_AGAIN')
  t.equal(await second, '10.0.0.2')
})

await test('Names that nobody keeps a place for cannot take those of Redis, REST, sockets and provider, and none of these another', async (t) => {
  const { ask, running, lookup, aSecondPasses } = namesOf(t, 8)
  const others = ['collector', 'keys', 'sentinel-1', 'sentinel-2', 'sentinel-3', 'one-time'].map((name) => ask(name))
  await aSecondPasses()
  t.same(running(), ['collector', 'keys', 'sentinel-1', 'sentinel-2'], 'they share four places')
  const redis = ask('redis', 'redis')
  const api = ask('api', 'api')
  const provider = ask('provider', 'provider')
  await aSecondPasses()
  const sockets = ask('sockets', 'sockets')
  t.equal(running().length, 8)
  t.match(
    running(),
    exactly('api', String, String, 'provider', 'redis', String, String, 'sockets'),
    'and begin no second one',
  )
  lookup('redis').answers('10.0.0.1')
  t.equal(await redis, '10.0.0.1')
  const again = ask('redis', 'redis')
  await until(() => running().includes('redis'))
  lookup('redis').answers('10.0.0.2')
  t.equal(await again, '10.0.0.2')
  t.notOk(running().includes('one-time'))
  lookup('keys').fails('EAI_AGAIN')
  t.ok(running().includes('sentinel-3'), 'whoever waits for a place gets the next one that is free')
  for (const name of ['api', 'provider', 'sockets']) lookup(name).answers('10.0.0.3')
  t.same(await Promise.all([api, provider, sockets]), ['10.0.0.3', '10.0.0.3', '10.0.0.3'])
  t.ok(others.length > 0)
})

await test('Whichever peers are silent, beside others, each further peer is looked up at once', async (t) => {
  const peers = ['redis', 'api', 'sockets', 'provider'] as const
  for (let silent = 0; silent < 2 ** peers.length; silent++) {
    const { ask, lookup, running, aSecondPasses } = namesOf(t, 8)
    const isSilent = (_peer: string, at: number): boolean => (silent & (2 ** at)) > 0
    for (const name of ['1', '2', '3', '4', '5']) void ask(name)
    for (const peer of peers.filter(isSilent)) void ask(peer, peer)
    await aSecondPasses()
    for (const peer of peers.filter((each, at) => !isSilent(each, at))) {
      const asked = ask(peer, peer)
      await until(() => running().includes(peer))
      lookup(peer).answers('10.0.0.1')
      t.equal(await asked, '10.0.0.1', `${peer} while ${peers.filter(isSilent).join(', ') || 'no peer'} is silent`)
    }
  }
})

await test('A lookup that goes on after the answer of the other one counts', async (t) => {
  const { ask, running, lookup, aSecondPasses } = namesOf(t, 8)
  const first = ask('a')
  await aSecondPasses()
  lookup('a', 'newest').answers('10.0.0.1')
  await first
  await setImmediate()
  void ask('a')
  await aSecondPasses()
  t.same(running(), ['a', 'a'])
})

await test('Two peers that share a name need one place for it, whoever asked first', async (t) => {
  const { ask, running } = namesOf(t, 8)
  for (const name of ['1', '2', '3', '4']) void ask(name)
  void ask('upstream', 'other')
  t.notOk(running().includes('upstream'))
  void ask('upstream', 'sockets')
  t.ok(running().includes('upstream'))
})

await test('With the four threads that Node has by default, each name has one lookup and no place is kept', async (t) => {
  const { ask, running, lookup, aSecondPasses } = namesOf(t, 2)
  void ask('provider', 'provider')
  await aSecondPasses()
  const api = ask('api', 'api')
  t.same(running(), ['api', 'provider'], 'the second place is not for another lookup of the same name')
  lookup('api').answers('10.0.0.1')
  t.equal(await api, '10.0.0.1')
})

await test('The memory of names is bounded, and forgets none that somebody waits for', async (t) => {
  const { names, ask, begun, lookup, aSecondPasses } = namesOf(t, 8)
  const waiting = ask('waiting')
  for (let count = 0; count < 1000; count++) {
    const asked = ask(`name-${count}`)
    lookup(`name-${count}`).answers('10.0.0.1')
    await asked
  }
  t.equal(begun.length, 1001)
  const [forgotten, known] = [ask('name-0'), ask('name-999')]
  await aSecondPasses()
  t.equal(await known, '10.0.0.1')
  t.ok(names.isUnresolved('name-0'), 'its last addresses are not known any more')
  lookup('name-0').answers('10.0.0.2')
  t.equal(await forgotten, '10.0.0.2')
  t.ok(names.isUnresolved('waiting'))
  lookup('waiting').answers('10.0.0.1')
  t.equal(await waiting, '10.0.0.1')
  await until(() => !names.isUnresolved('waiting'))
})
