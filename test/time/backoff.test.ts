import { test } from 'tap'
import { backoffMs } from '../../src/time/backoff.ts'

void test('a pause doubles with every failure, up to the longest', async (t) => {
  const pauses = [0, 1, 2, 3, 4, 2000].map((failures) => backoffMs(failures, { firstMs: 100, longestMs: 1000 }))
  t.same(pauses, [100, 200, 400, 800, 1000, 1000])
})

void test('chance shortens a pause by the part that is left to it, and never prolongs it', async (t) => {
  const pauses = Array.from({ length: 500 }, () => backoffMs(9, { firstMs: 100, longestMs: 1000, jitter: 0.25 }))
  t.ok(Math.min(...pauses) >= 750 && Math.max(...pauses) <= 1000, 'all are between three quarters and the whole')
  t.ok(Math.max(...pauses) - Math.min(...pauses) > 100, 'they differ')
})
