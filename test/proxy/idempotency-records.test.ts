import { mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { IdempotencyRecords } from '../../src/proxy/idempotency/idempotency-records.ts'
import { KeyUsage } from '../../src/proxy/idempotency/key-usage.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { idempotencyKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { ANSWER, DIGEST, LIMITS } from '../support/idempotency/records.ts'
import { claim, repeat, twoInstances } from '../support/idempotency/two-instances.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'
import { until } from '../support/time/until.ts'

await test('a call whose holder is gone is unknown for ever once its lease has run out', async (t) => {
  const { session, links, here, there } = await twoInstances({ leaseMs: 300, clockSkewMs: 300 })
  const held = await claim(here, session)
  t.equal(await repeat(there, session), 'running')
  links[0].is = 'down'
  await until(async () => (await repeat(there, session)) === 'unknown')
  t.equal(held.maySend, false)
  links[0].is = 'up'
  let lost = 0
  held.onLost = () => lost++
  await held.keep(ANSWER)
  t.equal(await repeat(there, session), 'unknown', 'what was said once stays true')
  t.equal(lost, 1)
})

await test('a holder that is late cannot free a key that was called unknown', async (t) => {
  const { session, links, here, there } = await twoInstances({ leaseMs: 50, clockSkewMs: 0 })
  const held = await claim(here, session)
  links[0].is = 'down'
  await until(async () => (await repeat(there, session)) === 'unknown')
  links[0].is = 'up'
  await held.free()
  t.equal(await repeat(there, session), 'unknown')
  t.equal(held.isLost, true)
  t.match(await here.find(held.own), { is: 'unknown' })
})

await test('a key that was freed without a reply does not count as lost', async (t) => {
  const { session, links, here, there } = await twoInstances()
  const held = await claim(here, session)
  links[0].is = 'silent'
  await held.free()
  links[0].is = 'up'
  const later = await claim(here, session)
  await until(() => links[0].removals === 2, 'the removal is repeated')
  t.equal(held.isLost, false)
  await later.keep(ANSWER)
  t.equal(await repeat(there, session), 'answered')
})

await test('a call that was answered while the store was away is not called unknown before its holder can say so', async (t) => {
  const { store, session, links, here, there } = await twoInstances({ leaseMs: 50, clockSkewMs: 0 })
  const held = await claim(here, session)
  const key = idempotencyKey(session.id, 'key')
  const written = await store.read(key)
  for (const link of links) link.is = 'down'
  await held.keep(ANSWER)
  await until(() => !held.maySend, 'the lease has run out')
  links[1].is = 'up'
  links[1].availableForMs = (asked) => (asked === key ? 999 : Infinity)
  t.equal(await repeat(there, session), 'running')
  t.same(await store.read(key), written)
  links[0].is = 'up'
  await until(async () => (await repeat(there, session)) === 'answered')
})

await test('a lease is renewed while the call runs', async (t) => {
  // On a machine that stands still, a lease runs out.
  mock.timers.enable({ apis: ['setInterval', 'Date'], now: Date.now() })
  t.teardown(() => mock.timers.reset())
  t.intercept(performance, 'now', { value: () => Date.now() })
  const times = { leaseMs: 300, clockSkewMs: 0 }
  const { session, here, there } = await twoInstances(times)
  const held = await claim(here, session)
  for (let passedMs = 0; passedMs <= 3 * times.leaseMs; passedMs += 10) {
    t.equal(await repeat(there, session), 'running')
    t.equal(held.maySend, true)
    mock.timers.tick(10)
  }
  await held.keep(ANSWER)
  t.match(await there.claim(session, 'key', DIGEST), { is: 'answered', answer: ANSWER })
})

await test('a response that could not be recorded is recorded when the store is back', async (t) => {
  for (const failure of ['down', 'silent'] as const) {
    const { session, links, here, there } = await twoInstances()
    const held = await claim(here, session)
    links[0].is = failure
    t.equal(await held.keep(ANSWER), 'answered')
    links[0].is = 'up'
    await until(async () => (await repeat(there, session)) === 'answered', failure)
    t.match(await there.claim(session, 'key', DIGEST), { answer: ANSWER })
  }
})

await test('so is one whose bytes could not be counted', async (t) => {
  const { session, links, here, there } = await twoInstances()
  const held = await claim(here, session)
  links[0].is = 'down'
  const large = { ...ANSWER, body: Buffer.alloc(5000, 'x') }
  t.equal(await held.keep(large), 'answered')
  links[0].is = 'up'
  await until(async () => (await repeat(there, session)) !== 'running')
  t.match(await there.claim(session, 'key', DIGEST), { is: 'answered', answer: large })
})

await test('a renewal without a reply does not lose the record', async (t) => {
  const { session, links, here, there } = await twoInstances({ leaseMs: 300, clockSkewMs: 60_000 })
  const held = await claim(here, session)
  const key = idempotencyKey(session.id, 'key')
  const before = (await links[1].readUntracked(key))?.value
  // The link is believed to be up, or it would not be tried.
  links[0].is = 'silent'
  links[0].unavailableSince = () => undefined
  await until(async () => (await links[1].readUntracked(key))?.value !== before, 'a renewal was carried out')
  links[0].is = 'up'
  await held.keep(ANSWER)
  t.equal(await repeat(there, session), 'answered')
})

await test('a claim renews its lease once at a time', async (t) => {
  const { session, links, here } = await twoInstances({ leaseMs: 30, clockSkewMs: 60_000 })
  const replies: (() => void)[] = []
  const replace = links[0].replace.bind(links[0])
  links[0].replace = async (...args) => {
    await new Promise<void>((resolve) => void replies.push(resolve))
    return replace(...args)
  }
  const held = await claim(here, session)
  await until(() => replies.length > 0, 'a renewal waits for its reply')
  const over = Date.now() + 100
  await until(() => Date.now() > over, 'others are due')
  t.equal(replies.length, 1)
  const freed = held.free()
  for (const reply of replies) reply()
  await freed
  t.equal(await here.find(held.own), undefined, 'nothing brings the record back')
})

await test('a record that a failover has lost is written again when the call ends', async (t) => {
  const { store, session, here, there } = await twoInstances()
  const held = await claim(here, session)
  await store.remove(idempotencyKey(session.id, 'key'))
  await held.keep(ANSWER)
  t.equal(await repeat(there, session), 'answered')
})

await test('a record that this instance cannot read is not taken for a free key, and its call runs while the record is renewed', async (t) => {
  const renewals = new HeldTimers(t, 'setInterval', 1000)
  const { store, session, here } = await twoInstances({ leaseMs: 3000, clockSkewMs: 0 })
  const foreign = new IdempotencyRecords(
    store,
    new Envelope(new Changeable(['another secret of thirty-two bytes'])),
    LIMITS,
    { leaseMs: 3000, clockSkewMs: 0, settleMs: 0 },
  )
  const held = await claim(foreign, session)
  const pass = stoppedClocks(t)
  for (let lease = 0; lease < 3; lease++) {
    t.equal(await repeat(here, session), 'running')
    pass(2000)
    renewals.run()
    await setImmediate()
  }
  await held.keep(ANSWER)
  t.equal(await repeat(here, session), 'running')
  pass(3000)
  t.equal(await repeat(here, session), 'running')
  pass(1)
  t.equal(await repeat(here, session), 'unknown', 'nobody will send it any more')
  t.equal(await repeat(foreign, session), 'answered', 'and it is left as it is')
})

await test('the store learns neither the key nor the body nor the response of a call', async (t) => {
  const { store, session, here } = await twoInstances()
  const held = await claim(here, session)
  await held.keep(ANSWER)
  const key = idempotencyKey(session.id, 'key')
  const { value = '' } = (await store.read(key)) ?? {}
  t.notMatch(Buffer.from(value.split('.').at(-1) ?? '', 'base64url').toString('latin1'), /done|etag|digest/)
  t.not(key, idempotencyKey('another session', 'key'))
})

await test('a response whose record could not be written at first is counted once', async (t) => {
  const { store, session, links, here } = await twoInstances()
  const held = await claim(here, session)
  const counted = new KeyUsage(store, LIMITS)
  const before = await counted.addBytes(session, 0)
  const replace = links[0].replace.bind(links[0])
  let failures = 0
  links[0].replace = async (...change) => {
    if (failures++ === 0) throw new StoreUnavailable('lost')
    return replace(...change)
  }
  const body = Buffer.alloc(counted.prepaidBytes + 500)
  await held.keep({ ...ANSWER, body })
  await until(async () => (await repeat(here, session)) === 'answered', 'the record is written later')
  t.equal((await counted.addBytes(session, 0)).bytes - before.bytes, 500)
})
