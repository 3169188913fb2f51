import { test } from 'tap'
import { MinuteCounts } from '../../src/limits/minute-counts.ts'

void test('MinuteCounts allows each key its limit in a minute, where a heavy event counts as several', async (t) => {
  let now = 5000
  t.intercept(performance, 'now', { value: () => now })
  const counts = new MinuteCounts()
  t.same([counts.allows('a', 4, 3), counts.allows('a', 4, 2), counts.allows('a', 4)], [true, false, true])
  t.notOk(counts.allows('a', 4), 'what was allowed counts, what was refused does not')
  t.ok(counts.allows('b', 4), 'another key')
  t.ok(counts.allows('a', 0, 100), '0 is no limit')
  now += 59_999
  t.notOk(counts.allows('a', 4))
  t.equal(counts.secondsLeft, 1)
  now += 1
  t.ok(counts.allows('a', 4, 4), 'a new minute')
})

void test('MinuteCounts begins anew when another key would be one too many', async (t) => {
  const counts = new MinuteCounts(2)
  t.same(
    ['a', 'a', 'b', 'a', 'c', 'a'].map((key) => counts.allows(key, 1)),
    [true, false, true, false, true, true],
  )
})

void test('MinuteCounts tells who is at a limit, without counting that, and for how long', async (t) => {
  let now = 5000
  t.intercept(performance, 'now', { value: () => now })
  const counts = new MinuteCounts(10, 2000)
  t.notOk(counts.isFull('a', 1), 'nothing was counted')
  t.equal(counts.secondsLeft, 1)
  t.ok(counts.allows('a', 2))
  t.same([counts.isFull('a', 2), counts.isFull('a', 1), counts.isFull('b', 1)], [false, true, false])
  t.equal(counts.secondsLeft, 2)
  now += 500
  t.equal(counts.secondsLeft, 2, 'whole seconds, in which the window ends')
  t.ok(counts.allows('a', 2), 'being asked has counted nothing')
  t.ok(counts.isFull('a', 2))
  now += 1500
  t.notOk(counts.isFull('a', 2), 'the window is over')
  t.equal(counts.secondsLeft, 1)
})

void test('MinuteCounts counts 100,000 keys, as many as an attacker may make up in a minute', async (t) => {
  const counts = new MinuteCounts()
  for (let key = 0; key < 100_000; key++) counts.allows(`${key}`, 1)
  t.notOk(counts.allows('0', 1))
  t.ok(counts.allows('one more', 1))
  t.ok(counts.allows('0', 1))
})
