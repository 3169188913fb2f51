import * as fc from 'fast-check'
import { test } from 'tap'
import { SlidingCount } from '../../src/time/sliding-count.ts'

await test('events of about the same time count, and are forgotten, as if all had happened at the last of them', (t) => {
  const count = new SlidingCount(100)
  count.add(1000)
  const slice = count.add(1099, 2)
  count.add(1100, 4)
  t.same(count.slices, [
    { from: 1000, until: 1099, count: 3 },
    { from: 1100, until: 1100, count: 4 },
  ])
  t.same(
    [999, 1000, 1098, 1099, 1100].map((time) => count.since(time)),
    [7, 7, 7, 4, 0],
  )
  t.same(count.forget(1098), [])
  t.same(count.forget(1099), [slice])
  t.equal(count.since(0), 4)
  t.same(count.forget(1100), [{ from: 1100, until: 1100, count: 4 }])
  t.same(count.slices, [], 'nothing is kept when all is old')
  t.end()
})

await test('an event that is told late has its place, and none is forgotten too early', (t) => {
  const event = fc.record({ at: fc.nat({ max: 1000 }), count: fc.integer({ min: 1, max: 9 }) })
  const counts = fc.property(fc.array(event), fc.nat({ max: 200 }), fc.nat({ max: 1000 }), (events, sliceMs, time) => {
    const sliding = new SlidingCount(sliceMs)
    for (const { at, count } of events) sliding.add(at, count)
    const since = (from: number): number => events.reduce((total, { at, count }) => total + (at > from ? count : 0), 0)
    const starts = sliding.slices.map(({ from }) => from)
    const isOrdered = starts.every((from, at) => at === 0 || from >= (starts[at - 1] ?? 0))
    const counted = sliding.since(time)
    sliding.forget(time)
    const kept = sliding.since(-1)
    return isOrdered && counted >= since(time) && counted <= since(time - Math.max(1, sliceMs)) && kept >= since(time)
  })
  fc.assert(counts, { numRuns: 500 })
  t.pass('none is forgotten too early')
  t.end()
})
