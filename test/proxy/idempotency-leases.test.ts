import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { IdempotencyRecords } from '../../src/proxy/idempotency/idempotency-records.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { DIGEST, LIMITS, sessionIn } from '../support/idempotency/records.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'

await test('the lease of a key ends by whichever clock is there first', async (t) => {
  const [pass, set] = [clockAhead(t), timeAhead(t)]
  for (const [monotonicMs, timeOfDayMs] of [
    [0, 16_000],
    [16_000, 0],
    // The time of day was set back meanwhile.
    [16_000, -3_600_000],
  ] as const) {
    const store = new MemoryStore()
    const session = await sessionIn(store)
    const records = new IdempotencyRecords(store, new Envelope(new Changeable([SECRETS])), LIMITS)
    const claimed = await records.claim(session, 'key', DIGEST)
    if (claimed.is !== 'claimed') throw new Error(claimed.is)
    t.equal(claimed.claim.maySend, true)
    pass(monotonicMs)
    set(timeOfDayMs)
    t.equal(claimed.claim.maySend, false, `${monotonicMs} and ${timeOfDayMs}`)
    await claimed.claim.free()
  }
})
