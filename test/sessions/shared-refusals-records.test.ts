import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { SharedRefusals, type RefusedUser } from '../../src/sessions/shared-refusals.ts'
import { REFRESHES_KEY, besideKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

const HOUR_MS = 3_600_000

/** A store that takes its time to write. */
class SlowStore extends MemoryStore {
  override async lock(...args: Parameters<MemoryStore['lock']>) {
    await setImmediate()
    return super.lock(...args)
  }
  override async replace(...args: Parameters<MemoryStore['replace']>) {
    await setImmediate()
    return super.replace(...args)
  }
  override async remove(...args: Parameters<MemoryStore['remove']>) {
    await setImmediate()
    return super.remove(...args)
  }
}

/** @param leftMs how much longer the token of the user is good */
const userOf = (name: string, leftMs = -1000): RefusedUser => ({
  key: `session-${name}`,
  tokens: 'first',
  name,
  source: name,
  tokenExpiresAt: Date.now() + leftMs,
})

async function expiresInMs(store: MemoryStore, { key }: RefusedUser): Promise<number> {
  return ((await store.read(besideKey(key, 'refusal')))?.expiresAt ?? 0) - Date.now()
}

await test('a session whose token is good goes on, and is tried once when that has expired', async (t) => {
  const set = timeAhead(t)
  const refusals = new SharedRefusals(new SlowStore())
  const alice = userOf('alice', 10_000)
  await refusals.refused(alice, 'access_denied', undefined)
  set(2)
  refusals.granted(standstill.now())
  const record = (await refusals.read(alice.key)) ?? ''
  t.match(await refusals.refused(alice, 'access_denied', record), { ends: false }, 'although it is final')
  const second = (await refusals.read(alice.key)) ?? ''
  const leftMs = await refusals.leftMs(second, alice)
  t.ok(leftMs > 29_000 && leftMs <= 30_000, `${leftMs}`)
  set(11_000)
  t.equal(await refusals.leftMs(second, alice), 0)
  t.match(await refusals.refused(alice, 'access_denied', second), { ends: true })
  const last = (await refusals.read(alice.key)) ?? ''
  t.ok((await refusals.leftMs(last, alice)) > 29_000, 'it was tried')
  set(30_001)
  t.equal(await refusals.leftMs(last, alice), 0)
})

await test('a session that was limited waits as long as the provider says, also after its token has expired', async (t) => {
  const set = timeAhead(t)
  const store = new SlowStore()
  const refusals = new SharedRefusals(store)
  const alice = userOf('alice', 5000)
  await refusals.limited(alice, 20_000, undefined)
  const record = (await refusals.read(alice.key)) ?? ''
  t.ok((await refusals.leftMs(record, alice)) > 19_000)
  set(6000)
  const leftMs = await refusals.leftMs(record, alice)
  t.ok(leftMs > 13_000 && leftMs <= 14_000, `${leftMs}`)
  await refusals.limited(alice, 90_000, record)
  const longer = (await refusals.read(alice.key)) ?? ''
  t.equal(await refusals.leftMs(longer, alice), 60_000, 'a minute at a time')
  const inMs = await expiresInMs(store, alice)
  t.ok(inMs > HOUR_MS - 1000 && inMs <= HOUR_MS, `${inMs}`)
  await refusals.forget(alice.key)
  t.equal(await refusals.read(alice.key), undefined)
})

await test('refusals are forgotten an hour after the first', async (t) => {
  const set = timeAhead(t)
  const store = new SlowStore()
  const refusals = new SharedRefusals(store)
  const alice = userOf('alice')
  await refusals.refused(alice, 'odd', undefined)
  set(600_000)
  await refusals.refused(alice, 'odd', await refusals.read(alice.key))
  const inMs = await expiresInMs(store, alice)
  t.ok(inMs > HOUR_MS - 601_000 && inMs <= HOUR_MS - 600_000, `${inMs}`)
})

await test('a refusal that cannot be shared has no consequence', async (t) => {
  const store = new MemoryStore()
  store.readMarked = async () => {
    throw new StoreUnavailable('away')
  }
  await t.rejects(new SharedRefusals(store).refused(userOf('alice'), 'odd', undefined), StoreUnavailable)
  const refusing = new MemoryStore()
  refusing.lock = async () => {
    throw new StoreUnavailable('away')
  }
  await t.rejects(new SharedRefusals(refusing).refused(userOf('alice'), 'odd', undefined), StoreUnavailable)
})

await test('of two refusals that two instances write at the same moment none is lost', async (t) => {
  const store = new SlowStore()
  const [here, there] = [new SharedRefusals(store), new SharedRefusals(store)]
  await Promise.all([here.refused(userOf('alice'), 'odd', undefined), there.refused(userOf('bob'), 'odd', undefined)])
  t.match(await new SharedRefusals(store).refused(userOf('carol'), 'odd', undefined), { isTrouble: true })
})

await test('grants are told together, once for each half second, the two latest of different users', async (t) => {
  const telling = new HeldTimers(t, 'setTimeout', 500)
  const store = new SlowStore()
  const refusals = new SharedRefusals(store)
  const told = async (): Promise<unknown> => {
    telling.run()
    for (let turn = 0; turn < 5; turn++) await setImmediate()
    const news = JSON.parse((await store.read(REFRESHES_KEY))?.value ?? '{}') as { granted?: [string, number][] }
    return news.granted?.map(([name]) => name).toSorted()
  }
  const grant = (name?: string): void => refusals.granted(standstill.now(), name)
  for (const name of ['alice', 'bob', 'alice', 'carol']) grant(name)
  t.equal(telling.size, 1)
  t.same(await told(), ['alice', 'carol'])
  await new Promise((resolve) => void setTimeout(resolve, 5))
  grant()
  t.equal(telling.size, 1)
  const latest = (await told()) as string[]
  t.ok(latest.includes('login'), latest.join(' '))
})
