import { test, type Test } from 'tap'
import { clockWarnings, StoreClock } from '../../src/store/servers/store-clock.ts'
import { storeNow } from '../../src/time/store-time.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'
import { replace } from '../support/time/replace.ts'
import { standstill } from '../../src/time/standstill.ts'

/** A clock of the store, whose masters show what a test says. */
function clockOf(t: Test) {
  const pass = stoppedClocks(t)
  const world = { standstills: 0 }
  replace(t, standstill, 'count', undefined)
  Object.defineProperty(standstill, 'count', { get: () => world.standstills, configurable: true })
  const clock = new StoreClock()
  t.teardown(() => clock.close())
  const startedAt = Date.now()
  const show = (name: string, time: number, masters: readonly string[], [beforeMs, afterMs] = [0, 0]): void => {
    const at = performance.now()
    clock.note(name, { time: startedAt + time, sentAt: at - beforeMs, receivedAt: at + afterMs }, new Set(masters))
  }
  return { clock, world, pass, show, shown: () => storeNow() - startedAt }
}

await test('the clock of the store is that of its master as closely as is known, and runs on by itself', (t) => {
  const { clock, pass, show, shown } = clockOf(t)
  t.same([clock.hereAheadMs, clock.mastersDifferMs, clock.warnings()], [undefined, 0, []])
  show('one', 1000, ['one'], [20, 10])
  t.equal(shown(), 1005, 'the middle, with the milliseconds that were cut off')
  t.equal(clock.hereAheadMs, -1005.5)
  show('one', 1000, ['one'], [7, 0])
  t.equal(shown(), 1005, 'what is known stays if it may be true')
  show('one', 1000, ['one'], [2, 3])
  t.equal(shown(), 1003, 'no later than it may be')
  show('one', 1005, ['one'], [5, 1])
  t.equal(shown(), 1004, 'no earlier than it may be')
  pass(500)
  t.equal(shown(), 1504)
  clock.close()
  t.equal(shown(), 500, 'then the clock of this machine')
  t.end()
})

await test('of several masters the median counts, and what one holds ends by its own clock', (t) => {
  const { clock, show, shown } = clockOf(t)
  const all = ['a', 'b', 'c']
  show('b', 2000, all)
  show('a', 9000, all)
  show('c', -3000, all)
  t.equal(shown(), 2000)
  t.equal(clock.mastersDifferMs, 12_000)
  t.same(
    all.map((name) => clock.skewMs(() => name)),
    [7000, 0, -5000],
  )
  t.equal(
    clock.skewMs(() => 'another'),
    0,
  )
  t.match(clock.warnings(), {
    length: 1,
    0: /^the clocks of the masters of Redis are up to 12 s apart; .* Synchronize the clocks \(NTP\)\.$/,
  })
  show('a', 9000, ['a', 'b'])
  t.equal(clock.mastersDifferMs, 7000, 'the one that is gone is forgotten')
  t.equal(
    clock.skewMs(() => 'c'),
    0,
  )
  t.end()
})

await test('masters that differ by less than a second count as one, and whoever knows no master has no skew', (t) => {
  const { clock, show } = clockOf(t)
  const all = ['a', 'b']
  show('a', 0, all)
  show('b', 999, all)
  t.equal(
    clock.skewMs(() => {
      throw new Error('is not asked for')
    }),
    0,
  )
  t.equal(
    clock.skewMs(() => 'a'),
    0,
  )
  show('b', 1001, all)
  t.equal(
    clock.skewMs(() => 'a'),
    -1000,
  )
  t.equal(
    clock.skewMs(() => {
      throw new Error('no master')
    }),
    0,
  )
  t.end()
})

await test('masters that differ by a second exactly are two', (t) => {
  const { clock, show } = clockOf(t)
  for (const [name, time] of [
    ['a', 0],
    ['b', 1000],
  ] as const)
    show(name, time, ['a', 'b'])
  t.equal(clock.mastersDifferMs, 1000)
  t.same(
    ['a', 'b'].map((name) => clock.skewMs(() => name)),
    [-1000, 0],
  )
  t.end()
})

await test('where the monotonic clock stood still, it did for all masters', (t) => {
  const { clock, world, show, shown } = clockOf(t)
  const all = ['a', 'b']
  for (const name of all) show(name, 0, all, [1, 0])
  world.standstills++
  show('a', 1001, all)
  t.equal(clock.mastersDifferMs, 1000, 'a second may be a difference of the master alone')
  for (const name of all) show(name, 1001, all)
  world.standstills++
  show('a', 60_000, all)
  t.same([clock.mastersDifferMs, shown()], [0, 60_000])
  show('a', 120_000, all)
  t.equal(clock.mastersDifferMs, 60_000, 'that was no standstill')
  t.end()
})

const of = (...args: [number, number]) => clockWarnings(...args).map((each) => each.replace(/^(.*? Redis)\b.*$/, '$1'))

await test('the clock of this machine is compared with the one that the store has shown', (t) => {
  const { clock, show } = clockOf(t)
  t.doesNotThrow(() => clock.close(), 'before it has shown any')
  show('one', -6000, ['one'])
  t.match(clock.warnings(), { length: 1, 0: /^the clock of this machine is 6 s ahead of that of Redis/ })
  t.end()
})

await test('an operator is warned of clocks that differ by more than five seconds', (t) => {
  t.same(of(5000, 5000), [])
  t.same(of(-5000, 0), [])
  t.same(of(5001, 0), ['the clock of this machine is 5 s ahead of that of Redis'])
  t.same(of(-7400, 0), ['the clock of this machine is 7 s behind that of Redis'])
  t.same(of(0, 5001), ['the clocks of the masters of Redis'])
  t.match(clockWarnings(9000, 0)[0], /Synchronize the clocks \(NTP\)\.$/)
  t.end()
})
