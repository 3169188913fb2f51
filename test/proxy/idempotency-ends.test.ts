import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { IdempotencyRecords } from '../../src/proxy/idempotency/idempotency-records.ts'
import { KeyUsage } from '../../src/proxy/idempotency/key-usage.ts'
import { digestOf } from '../../src/proxy/idempotency/record.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { ANSWER, DIGEST, LIMITS, sessionIn } from '../support/idempotency/records.ts'
import { claim, repeat, twoInstances } from '../support/idempotency/two-instances.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const LEASE_MS = 30_000
/** Larger than all that may wait for the store. */
const HUGE = { ...ANSWER, body: Buffer.alloc(16 * 1_048_576) }

async function limited(limits: Partial<typeof LIMITS>) {
  const store = new MemoryStore()
  const session = await sessionIn(store)
  const all = { ...LIMITS, ...limits }
  return {
    store,
    session,
    usage: new KeyUsage(store, all),
    records: new IdempotencyRecords(store, new Envelope(new Changeable([SECRETS])), all),
  }
}

await test('a key of another call is refused, and what is known of a call without its response is said', async (t) => {
  const { session, records } = await limited({ maxRecords: 1 })
  const first = await claim(records, session)
  t.equal((await records.claim(session, 'key', digestOf('POST', '/other', null))).is, 'otherCall')
  t.equal(await first.keep(ANSWER), 'answered')
  const second = await records.claim(session, 'second', DIGEST)
  if (second.is !== 'claimed') throw new Error(second.is)
  t.equal(second.claim.mayKeep, false)
  t.equal(await second.claim.keep(ANSWER), 'not_kept')
  t.same(await records.claim(session, 'second', DIGEST), { is: 'not_kept', status: ANSWER.status })
})

await test('a response for which a session has no bytes left is not kept, and takes none from others', async (t) => {
  const { store, session, records, usage } = await limited({ maxRecords: 10, maxKeptBytes: 100 })
  const large = await claim(records, session)
  t.equal(await large.keep({ ...ANSWER, body: Buffer.alloc(200) }), 'not_kept')
  t.same(await records.claim(session, 'key', DIGEST), { is: 'not_kept', status: ANSWER.status })
  t.same(await usage.addBytes(session, 0), { records: 1, bytes: usage.prepaidBytes })
  const small = await records.claim(session, 'small', DIGEST)
  if (small.is !== 'claimed') throw new Error(small.is)
  store.count = async () => Number(t.fail('a small response is counted already'))
  t.equal(await small.claim.keep({ ...ANSWER, body: Buffer.alloc(usage.prepaidBytes) }), 'answered')
})

await test('a call that ends in another way says so in its record', async (t) => {
  const { session, links, here, there } = await twoInstances()
  const held = await claim(here, session)
  links[0].is = 'down'
  t.equal(await held.finish({ is: 'unknown' }), 'unknown')
  t.equal(await repeat(there, session), 'running')
  links[0].is = 'up'
  await until(async () => (await repeat(there, session)) === 'unknown')
  const other = await here.claim(session, 'other', DIGEST)
  if (other.is !== 'claimed') throw new Error(other.is)
  t.equal(await other.claim.free(), 'freed')
})

await test('a response that is too large to wait for the store is not kept', async (t) => {
  const { session, links, here, there } = await twoInstances()
  const held = await claim(here, session)
  links[0].is = 'down'
  t.equal(await held.keep(HUGE), 'not_kept')
  links[0].is = 'up'
  await until(async () => (await repeat(there, session)) !== 'running')
  t.same(await there.claim(session, 'key', DIGEST), { is: 'not_kept', status: HUGE.status })
})

await test('that the response is not kept is written at once, if the store is back', async (t) => {
  const { session, links, here, there } = await twoInstances()
  const held = await claim(here, session)
  const replace = links[0].replace.bind(links[0])
  let attempts = 0
  links[0].replace = async (...args) => {
    if (++attempts === 1) throw new StoreUnavailable('away')
    await setImmediate()
    return replace(...args)
  }
  t.equal(await held.keep(HUGE), 'not_kept')
  t.equal(await repeat(there, session), 'not_kept')
})

await test('a renewal that fails for another reason than the store is a fault of this program, and is told', async (t) => {
  const renewals = new HeldTimers(t, 'setInterval', LEASE_MS / 3)
  const { session, links, here } = await twoInstances()
  await claim(here, session)
  const unhandled: unknown[] = []
  const emit = process.emit.bind(process) as (...event: unknown[]) => boolean
  t.intercept(process, 'emit', {
    value: (...event: unknown[]) => (event[0] === 'unhandledRejection' ? unhandled.push(event[1]) > 0 : emit(...event)),
  })
  for (const error of [new StoreUnavailable('away'), new TypeError('planted')]) {
    links[0].replace = async () => {
      throw error
    }
    renewals.run()
    await setImmediate()
  }
  t.match(unhandled, [{ name: 'TypeError' }])
})

await test('what could not be recorded is tried until it is, and a fault of this program is not taken for a store that is away', async (t) => {
  const { session, links, here, there } = await twoInstances()
  const held = await claim(here, session)
  const replace = links[0].replace.bind(links[0])
  let attempts = 0
  links[0].replace = async (...args) => {
    if (++attempts < 3) throw new StoreUnavailable('away')
    return replace(...args)
  }
  await held.keep(ANSWER)
  await until(async () => (await repeat(there, session)) === 'answered')
  const other = await here.claim(session, 'other', DIGEST)
  if (other.is !== 'claimed') throw new Error(other.is)
  links[0].replace = async () => {
    throw new TypeError('planted')
  }
  await t.rejects(other.claim.finish({ is: 'unknown' }), /planted/)
})

for (const end of ['keep', 'finish'] as const) {
  await test(`a call that ends (${end}) waits for the renewal of its lease, and renews no more`, async (t) => {
    const renewals = new HeldTimers(t, 'setInterval', LEASE_MS / 3)
    const { session, links, here, there } = await twoInstances()
    const held = await claim(here, session)
    const replace = links[0].replace.bind(links[0])
    const reply = Promise.withResolvers<void>()
    let renewing = 0
    links[0].replace = async (...args) => {
      if (++renewing === 1) await reply.promise
      return replace(...args)
    }
    renewals.run()
    const ended = end === 'keep' ? held.keep(ANSWER) : held.finish({ is: 'unknown' })
    t.equal(renewals.size, 0)
    await setImmediate()
    t.equal(renewing, 1)
    reply.resolve()
    await ended
    t.equal(held.isLost, false)
    t.equal(await repeat(there, session), end === 'keep' ? 'answered' : 'unknown')
  })
}

await test('a lease is not renewed while the store is away', async (t) => {
  const renewals = new HeldTimers(t, 'setInterval', LEASE_MS / 3)
  const { session, links, here } = await twoInstances()
  await claim(here, session)
  links[0].is = 'down'
  links[0].replace = async () => t.fail('a write that is certain to fail')
  renewals.run()
  await setImmediate()
})

await test('a renewal writes a record again that a failover has lost, and the call goes on', async (t) => {
  const renewals = new HeldTimers(t, 'setInterval', LEASE_MS / 3)
  const { store, session, here, there } = await twoInstances()
  const held = await claim(here, session)
  await store.remove(held.own.recordKey)
  renewals.run()
  await setImmediate()
  t.equal(await repeat(there, session), 'running')
  t.equal(held.isLost, false)
  t.equal(renewals.size, 1, 'it is renewed again')
  await held.keep(ANSWER)
  t.equal(await repeat(there, session), 'answered')
})

await test('a claim whose record belongs to another call is lost once, is not renewed, and never writes again', async (t) => {
  const renewals = new HeldTimers(t, 'setInterval', LEASE_MS / 3)
  const { store, session, here, there } = await twoInstances()
  const held = await claim(here, session)
  let losses = 0
  held.onLost = () => losses++
  await store.remove(held.own.recordKey)
  const other = await claim(there, session)
  const [own] = [renewals.size]
  renewals.run()
  await setImmediate()
  t.equal(held.isLost, true)
  t.equal(held.maySend, false)
  t.equal(renewals.size, own - 1)
  await other.free()
  await held.finish({ is: 'unknown' })
  t.equal(await store.read(held.own.recordKey), undefined)
  t.equal(losses, 1)
})

await test('a shutdown writes what could not be recorded, if the store is back', async (t) => {
  const { session, links, here, there } = await twoInstances()
  const held = await claim(here, session)
  links[0].is = 'down'
  await held.keep(ANSWER)
  links[0].is = 'up'
  const replace = links[0].replace.bind(links[0])
  links[0].replace = async (...args) => {
    await setImmediate()
    return replace(...args)
  }
  await here.close()
  t.equal(await repeat(there, session), 'answered')
})

await test('whoever is told that the outcome of a call is unknown is told the truth, and another call is not', async (t) => {
  const { session, links, here, there } = await twoInstances({ leaseMs: 1, clockSkewMs: 0 })
  const held = await claim(here, session)
  links[0].is = 'down'
  await until(() => Date.now() > held.own.leaseUntil, 'the lease has run out')
  t.equal(await repeat(there, session), 'unknown')
  t.equal((await there.claim(session, 'key', digestOf('POST', '/other', null))).is, 'otherCall')
})

await test('a call whose holder says how it ended at the last moment is not called unknown', async (t) => {
  const { session, links, here, there } = await twoInstances({ leaseMs: 1, clockSkewMs: 0 })
  const held = await claim(here, session)
  links[0].is = 'down'
  await until(() => Date.now() > held.own.leaseUntil, 'the lease has run out')
  const replace = links[1].replace.bind(links[1])
  links[1].replace = async (...args) => {
    links[0].is = 'up'
    await held.keep(ANSWER)
    return replace(...args)
  }
  t.equal(await repeat(there, session), 'answered')
})
