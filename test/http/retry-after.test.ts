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

await test('Retry-After: each form of a date is one in UTC, wherever this machine is', (t) => {
  const { TZ } = process.env
  t.teardown(() => {
    if (TZ === undefined) delete process.env['TZ']
    else process.env['TZ'] = TZ
  })
  t.teardown(followStoreClock(() => Date.UTC(1994, 10, 6, 8, 49, 30)))
  for (const zone of ['Asia/Kolkata', 'America/New_York']) {
    process.env['TZ'] = zone
    for (const date of ['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])
      t.equal(retryAfterMs(date), 7000, `${date} in ${zone}`)
  }
  t.end()
})
