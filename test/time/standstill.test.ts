import { test, type Test } from 'tap'
import { Standstill } from '../../src/time/standstill.ts'

/** A standstill by clocks that a test sets. Nobody looks at them by a timer. */
function manual(t: Test) {
  t.intercept(globalThis, 'setInterval', { value: () => ({ unref: () => 'a timer' }) })
  const at = { monotonic: 1000, timeOfDay: 1_000_000 }
  const still = new Standstill({ monotonic: () => at.monotonic, timeOfDay: () => at.timeOfDay })
  const pass = (monotonic: number, timeOfDay = monotonic): void => {
    at.monotonic += monotonic
    at.timeOfDay += timeOfDay
  }
  return { still, pass }
}

await test('a standstill is noticed by either clock, once, at the next look', async (t) => {
  const { still, pass } = manual(t)
  t.equal(still.count, 0)
  for (const [monotonic, timeOfDay, isStill] of [
    [100, 100, false],
    [500, 500, false],
    [501, 501, true],
    // The machine was suspended.
    [10, 60_000, true],
    [10, 10, false],
    // The time of day was set back, which may hide that.
    [10, -3_600_000, true],
    [10, 510, false],
    [400, 901, true],
  ] as const) {
    const before = still.count
    pass(monotonic, timeOfDay)
    t.equal(still.noticed, before)
    t.equal(still.count - before, Number(isStill), `${monotonic} and ${timeOfDay}`)
    t.equal(still.count - before, Number(isStill), 'once')
  }
})

await test('the clock for ages goes on while the monotonic clock stands still, never back, and does not sum up the drift of the clocks', async (t) => {
  const { still, pass } = manual(t)
  const from = still.now()
  pass(1000)
  t.equal(still.now() - from, 1000)
  pass(0, 60_000)
  t.equal(still.now() - from, 61_000)
  pass(100, -60_000)
  t.equal(still.now() - from, 61_100)
  for (let looks = 0; looks < 1000; looks++) {
    pass(10, looks % 2 === 0 ? 9 : 11)
    still.now()
  }
  t.equal(still.now() - from, 71_100)
  for (let looks = 0; looks < 100; looks++) {
    pass(100, 101)
    still.now()
  }
  t.equal(still.now() - from, 81_100, 'a slow correction of the time of day is no standstill')
})
