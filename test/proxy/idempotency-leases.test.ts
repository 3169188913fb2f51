import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { IdempotencyRecords } from '../../src/proxy/idempotency/idempotency-records.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { idempotencyKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { ANSWER, DIGEST, LIMITS, sessionIn } from '../support/idempotency/records.ts'
import { claim, repeat, twoInstances } from '../support/idempotency/two-instances.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

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

for (const ending of ['answered', 'freed'] as const) {
  await test(`a record that a failover has set back behind its renewals is still its holder's (${ending})`, async (t) => {
    const renewals = new HeldTimers(t, 'setInterval', 1000)
    const { store, session, here, there } = await twoInstances({ leaseMs: 3000, clockSkewMs: 0 })
    const held = await claim(here, session)
    const key = idempotencyKey(session.id, 'key')
    renewals.run()
    await until(async () => (await store.read(key))?.value !== held.own.text, 'the lease is renewed')
    // The new master has what was confirmed, and not yet what came after it.
    await store.remove(key)
    await store.create(key, held.own.text, held.own.expiresAt)
    await (ending === 'answered' ? held.keep(ANSWER) : held.free())
    t.equal(held.isLost, false)
    t.equal(await repeat(there, session), ending === 'answered' ? 'answered' : 'claimed')
  })
}
