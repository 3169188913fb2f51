import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { SharedRefusals, type RefusedUser } from '../../src/sessions/shared-refusals.ts'
import { REFRESHES_KEY, besideKey } from '../../src/store/keys.ts'
import type { MarkedReading } from '../../src/store/marked-reading.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { until } from '../support/time/until.ts'

/** A store whose clock is ahead of that of this process, or behind. */
class OtherClock extends MemoryStore {
  aheadMs = 0

  override async readMarked(key: string, mark: string): Promise<MarkedReading> {
    const reading = await super.readMarked(key, mark)
    return { ...reading, now: reading.now + this.aheadMs }
  }
}

/** A user whose token has expired. */
const userOf = (name: string): RefusedUser => ({
  key: `session-${name}`,
  tokens: 'first',
  name,
  source: name,
  tokenExpiresAt: Date.now() - 1000,
})

/** Resolves once the store says whom the provider has granted something. */
const told = (store: MemoryStore): Promise<void> =>
  until(async () => (await store.read(REFRESHES_KEY))?.value.includes('"granted":[[') === true)

for (const aheadMs of [0, 2_400_000, -2_400_000]) {
  await test(`refusals are judged by one clock, that of the store (${aheadMs} ms ahead)`, async (t) => {
    const store = new OtherClock()
    store.aheadMs = aheadMs
    const [here, there] = [new SharedRefusals(store), new SharedRefusals(store)]
    const alice = userOf('alice')
    t.match(await here.refused(alice, 'access_denied', undefined), { ends: false })
    const record = await there.read(alice.key)
    t.ok(record)
    const leftMs = await there.leftMs(record ?? '', alice)
    t.ok(leftMs > 29_000 && leftMs <= 30_000, `${leftMs}`)
    await delay(20)
    there.granted(standstill.now(), 'bob')
    await told(store)
    t.match(await here.refused(alice, 'access_denied', record), { ends: true })
  })
}

await test('a grant counts from when it was asked for, however late it is told', async (t) => {
  const store = new MemoryStore()
  const refusals = new SharedRefusals(store)
  const alice = userOf('alice')
  const before = standstill.now()
  await delay(20)
  await refusals.refused(alice, 'access_denied', undefined)
  refusals.granted(before, 'bob')
  await told(store)
  t.match(await refusals.refused(alice, 'access_denied', await refusals.read(alice.key)), { ends: false })
})

await test('refusals of the tokens that a session had before count for nothing', async (t) => {
  const refusals = new SharedRefusals(new MemoryStore())
  const alice = userOf('alice')
  await refusals.refused(alice, 'access_denied', undefined)
  await delay(20)
  refusals.granted(standstill.now())
  const renewed = { ...alice, tokens: 'second' }
  // An instance of another version has renewed them.
  const record = await refusals.read(alice.key)
  t.equal(await refusals.leftMs(record ?? '', renewed), 0)
  t.match(await refusals.refused(renewed, 'access_denied', record), { ends: false })
  t.ok((await refusals.leftMs((await refusals.read(alice.key)) ?? '', renewed)) > 20_000)
})

await test('an instance judges by its own grants before it has told them', async (t) => {
  const refusals = new SharedRefusals(new MemoryStore())
  const alice = userOf('alice')
  await refusals.refused(alice, 'access_denied', undefined)
  await delay(20)
  refusals.granted(standstill.now())
  t.match(await refusals.refused(alice, 'access_denied', await refusals.read(alice.key)), { ends: true })
})

await test('three users who are refused at the same moment on two instances are seen as three', async (t) => {
  const store = new MemoryStore()
  const [here, there] = [new SharedRefusals(store), new SharedRefusals(store)]
  await Promise.all([
    here.refused(userOf('alice'), 'odd', undefined),
    there.refused(userOf('bob'), 'odd', undefined),
    here.refused(userOf('carol'), 'odd', undefined),
  ])
  t.match(await there.refused(userOf('dave'), 'odd', undefined), { ends: false, isTrouble: true })
})

await test('texts that another version may have written, or a store whose clock was set back, hold nobody up', async (t) => {
  const refused = { first: 1, last: 1, count: 1, code: 'odd', next: Date.now() + 3_600_000, tokens: 'first' }
  for (const text of ['', '{', 'null', '5', '[]', '{}', '{"next":"x","tokens":"first"}', JSON.stringify(refused)]) {
    const store = new MemoryStore()
    const refusals = new SharedRefusals(store)
    const alice = userOf('alice')
    const { key } = alice
    for (const each of [REFRESHES_KEY, besideKey(key, 'refusal')]) await store.create(each, text, Date.now() + 60_000)
    t.ok((await refusals.leftMs(text, alice)) <= 60_000, text)
    t.match(await refusals.refused(alice, 'odd', text), { ends: false, isTrouble: false }, text)
    await refusals.limited(alice, 1000, await refusals.read(key))
    await refusals.forget(key)
    t.equal(await refusals.read(key), undefined)
  }
})
