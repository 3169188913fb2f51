import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { IdempotencyRecords, type Claimed } from '../../src/proxy/idempotency/idempotency-records.ts'
import { KeyUsage } from '../../src/proxy/idempotency/key-usage.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { Unsent } from '../../src/store/links/unsent.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { DIGEST, LIMITS, sessionIn } from '../support/idempotency/records.ts'
import { repeat, twoInstances } from '../support/idempotency/two-instances.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'
import { SECRETS } from '../support/server/test-server.ts'

const unsent = () => Promise.reject(new StoreUnavailable(new Unsent('there is no connection')))

await test('claims that fail, and repetitions, use up none of the keys of a session', async (t) => {
  const store = new MemoryStore()
  const session = await sessionIn(store)
  let isConfirmed = false
  const confirmed = {
    replace: store.replace.bind(store),
    create: (...record: Parameters<MemoryStore['create']>): Promise<boolean> =>
      isConfirmed ? store.create(...record) : Promise.reject(new StoreUnavailable(new Error('no replica confirms'))),
  }
  const records = new IdempotencyRecords(store, new Envelope(new Changeable([SECRETS])), LIMITS, undefined, confirmed)
  t.teardown(() => records.close())
  const claimKey = async (key: string): Promise<Claimed['is']> => (await records.claim(session, key, DIGEST)).is
  for (let index = 0; index < 3 * LIMITS.maxRecords; index++) await t.rejects(claimKey('refused'), StoreUnavailable)
  isConfirmed = true
  t.equal(await claimKey('first'), 'claimed')
  for (let index = 0; index < 3 * LIMITS.maxRecords; index++) t.equal(await claimKey('first'), 'running')
  t.same(await new KeyUsage(store, LIMITS).addBytes(session, 0).then(({ records: used }) => used), 1)
})

await test('a key too many whose record cannot be removed at once is refused for the sake of the store, and removed later', async (t) => {
  const { store, session, links, here, there } = await twoInstances()
  const usage = new KeyUsage(store, LIMITS)
  for (let count = 0; count < 2 * LIMITS.maxRecords; count++) await usage.addRecord(session)
  const removeIf = links[0].removeIf.bind(links[0])
  links[0].removeIf = async () => {
    links[0].removeIf = removeIf
    throw new StoreUnavailable('away')
  }
  await t.rejects(here.claim(session, 'key', DIGEST), StoreUnavailable)
  t.equal(await repeat(there, session), 'running')
  await until(async () => (await repeat(there, session)) === 'tooMany')
})

await test('a record that was written without a reply is removed when the store is back', async (t) => {
  const { session, links, here, there } = await twoInstances()
  links[0].is = 'silent'
  await t.rejects(here.claim(session, 'key', DIGEST), StoreUnavailable)
  t.equal(await repeat(there, session), 'running', 'it was written')
  links[0].is = 'up'
  await until(async () => (await repeat(there, session)) === 'claimed')
})

await test('a record that Redis writes after it was removed in vain is removed once more', async (t) => {
  const late = new HeldTimers(t, 'setTimeout', 5000)
  const { session, links, here, there } = await twoInstances()
  const create = links[0].create.bind(links[0])
  let carryOut = async (): Promise<unknown> => t.fail('nothing is under way')
  links[0].create = async (...args) => {
    carryOut = () => create(...args)
    throw new StoreUnavailable('no reply yet')
  }
  await t.rejects(here.claim(session, 'key', DIGEST), StoreUnavailable)
  await until(() => links[0].removals === 1)
  await carryOut()
  t.equal(await repeat(there, session), 'running')
  late.run()
  await setImmediate()
  t.equal(await repeat(there, session), 'claimed')
})

await test('a record that was not even sent is not removed, and one is whose count was not sent', async (t) => {
  const { session, links, here, there } = await twoInstances()
  const [link] = links
  const [create, count] = [link.create.bind(link), link.count.bind(link)]
  link.create = unsent
  await t.rejects(here.claim(session, 'other', DIGEST), StoreUnavailable)
  link.create = create
  link.count = unsent
  await t.rejects(here.claim(session, 'key', DIGEST), StoreUnavailable)
  link.count = count
  await until(() => link.removals > 0)
  t.equal(link.removals, 1)
  t.equal(await repeat(there, session), 'claimed')
})
