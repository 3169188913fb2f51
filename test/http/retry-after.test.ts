import { test } from 'tap'
import { retryAfterMs } from '../../src/http/retry-after.ts'
import { followStoreClock } from '../../src/time/store-time.ts'
import { wrongClock } from '../support/time/clock-ahead.ts'

await test('Retry-After: a date asks for as long on a machine whose clock is wrong', (t) => {
  const now = Date.now()
  t.teardown(followStoreClock(() => now))
  wrongClock(t)(-2_400_000)
  const inMs = retryAfterMs(new Date(now + 30_000).toUTCString()) ?? 0
  t.ok(inMs > 28_000 && inMs <= 30_000, `${inMs} ms`)
  t.end()
})
