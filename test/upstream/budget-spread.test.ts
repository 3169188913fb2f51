import { test } from 'tap'
import { spreadMs } from '../../src/upstream/budget/terms.ts'

const ceilings = (calls: number) => ({ orders: calls, otps: calls * 0.8, reads: calls * 0.5 })

await test('spread gives each one-time URL a time at which the budget has room for it', (t) => {
  const windows = [
    { windowMs: 60_000, ceilings: ceilings(300) },
    { windowMs: 600_000, ceilings: ceilings(1000) },
  ]
  t.same(
    [0, 1].map((count) => spreadMs(count, windows, [0, 0])),
    [0, 0],
  )
  let last = 0
  const times = Array.from({ length: 3000 }, (_value, at) => spreadMs(at + 1, windows, [0, 0]))
  for (const [at, ms] of times.entries()) {
    if (ms < last) t.fail(`the ${at + 1}th comes before its predecessor`)
    last = ms
    for (const { windowMs, ceilings } of windows) {
      const before = times[at - ceilings.otps] ?? -Infinity
      if (ms - before < windowMs - 1) t.fail(`${ceilings.otps + 1} within ${windowMs} ms at ${at + 1}`)
    }
  }
  t.ok((times[999] ?? 0) < 12 * 60_000, `1,000 take ${(times[999] ?? 0) / 60_000} minutes`)
  t.ok(spreadMs(1000, windows, [150, 500]) > (times[999] ?? 0), 'longer beside reads')
  t.end()
})

await test('within the shortest window one-time URLs are spread evenly, and the last has no room of its own', (t) => {
  const windows = [{ windowMs: 60_000, ceilings: ceilings(100) }]
  t.same(
    [2, 41, 80, 81, 121].map((count) => spreadMs(count, windows, [0])),
    [750, 30_000, 59_250, 60_000, 90_000],
  )
  t.end()
})
