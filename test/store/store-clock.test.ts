import { test } from 'tap'
import { probeRedis } from '../../src/store/probe.ts'
import { StoreClock } from '../../src/store/servers/store-clock.ts'
import { storeNow } from '../../src/time/store-time.ts'
import { besideKey } from '../../src/store/keys.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { clockAhead, wrongClock } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'
import { exactly } from '../support/exactly.ts'

const ONE = new Set(['one'])
const HOUR = 3_600_000

const aboutClocks = (lines: readonly string[]): string[] => lines.filter((line) => line.includes('clock'))

await test('the clock of the store follows what its master shows, as exactly as its replies tell', (t) => {
  const clock = new StoreClock()
  t.teardown(() => clock.close())
  t.equal(clock.hereAheadMs, undefined)
  const start = performance.now()
  const show = (time: number, tookMs: number): void =>
    clock.note('one', { time, sentAt: start - tookMs, receivedAt: start }, ONE)
  const shown = (): number => storeNow() - (performance.now() - start)
  const isNear = (time: number, what: string): void => void t.ok(Math.abs(shown() - time) < 2, `${what}: ${shown()}`)
  show(1_000_000, 2)
  isNear(1_000_001, 'the middle of the round trip')
  show(1_000_000, 400)
  isNear(1_000_001, 'a slow reply that fits changes nothing')
  show(1_000_500, 1000)
  isNear(1_000_500, 'no more than the reply allows')
  show(500_000, 0)
  isNear(500_000, 'the clock was set back')
  t.end()
})

await test('what a master holds ends by its own clock, and the clock of the store is the median', (t) => {
  const clock = new StoreClock()
  t.teardown(() => clock.close())
  const at = performance.now()
  const masters = new Set(['behind', 'right', 'ahead'])
  const show = (name: string, aheadMs: number, present = masters): void =>
    clock.note(name, { time: Date.now() + aheadMs, sentAt: at, receivedAt: at }, present)
  show('behind', -HOUR)
  show('right', 0)
  show('ahead', HOUR)
  const skews = ['behind', 'right', 'ahead', 'unknown'].map((name) => Math.round(clock.skewMs(() => name) / 1000))
  t.same(skews, [-3600, 0, 3600, 0])
  t.equal(
    clock.skewMs(() => {
      throw new Error('no master has the slot')
    }),
    0,
  )
  t.match(clock.warnings(), exactly(/^the clocks of the masters of Redis are up to 7200 s apart/))
  for (const name of ONE) show(name, 300, new Set(['one']))
  t.same([clock.skewMs(() => 'one'), clock.warnings()], [0, []], 'masters that are gone do not count')
  t.end()
})

await test('where the monotonic clock stood still, the first master that tells its time tells so for all', (t) => {
  const clock = new StoreClock()
  t.teardown(() => clock.close())
  const masters = new Set(['one', 'two', 'three'])
  const show = (name: string): void => {
    const at = performance.now()
    clock.note(name, { time: Date.now(), sentAt: at, receivedAt: at }, masters)
  }
  for (const name of masters) show(name)
  clockAhead(t)(-HOUR)
  show('two')
  t.ok(Math.abs(storeNow() - Date.now()) < 1000)
  t.equal(clock.mastersDifferMs < 1000, true)
  t.end()
})

await test('on a machine that was suspended the time is right once the store has answered anything', async (t) => {
  const { url } = await testRedis(t)
  const store = await connectedStore(t, url)
  clockAhead(t)(-HOUR)
  await store.read('k')
  t.ok(Math.abs(storeNow() - Date.now()) < 1000)
})

for (const seconds of [-6, 6]) {
  await test(`/readyz and --check warn of a clock that is ${seconds} s wrong, and of none that is a second wrong`, async (t) => {
    const { url } = await testRedis(t)
    const store = await connectedStore(t, url)
    const setWrong = wrongClock(t)
    const check = async (): Promise<string[]> =>
      (await probeRedis(url, { timeoutMs: 5000, replicas: 0, hasSubjects: true })).map(({ message }) => message)
    const where = seconds < 0 ? 'behind' : 'ahead of'
    setWrong(seconds > 0 ? 1000 : -1000)
    t.same([aboutClocks(store.warnings()), aboutClocks(await check())], [[], []])
    setWrong(seconds > 0 ? 5000 : -5000)
    const expected = [new RegExp(`^the clock of this machine is 6 s ${where} that of Redis.*NTP`)]
    await until(() => aboutClocks(store.warnings()).length > 0)
    t.match(aboutClocks(store.warnings()), expected)
    t.match(aboutClocks(await check()), expected)
    t.ok(Math.abs((store.condition().clock.hereAheadMs ?? 0) - seconds * 1000) < 100)
    t.ok(Math.abs(storeNow() - (Date.now() - seconds * 1000)) < 100)
    await store.create('k', 'v', storeNow() + 60_000)
    const { expiresAt = 0 } = (await store.read('k')) ?? {}
    t.ok(Math.abs(expiresAt - storeNow() - 60_000) < 1000)
  })
}

await test('what a master whose clock is ahead holds is written and read by its own clock', async (t) => {
  const { url } = await testRedis(t)
  const store = await connectedStore(t, url)
  const client = await storeClient(t, { redis: { url } })
  t.intercept(StoreClock.prototype, 'skewMs', { value: () => HOUR })
  const at = storeNow() + 60_000
  const confirmed = await store.openConfirmed(0)
  const tombstone = {
    key: besideKey('one', 'tombstone'),
    leftKey: besideKey('one', 'left'),
    value: 'logout',
    expiresAt: at,
  }
  t.ok(await store.create('one', 'v', at))
  t.ok(await confirmed.create('two', 'v', at))
  t.ok(await store.replace('one', 'v', 'w', at + 1))
  t.ok(await confirmed.replace('two', 'v', 'w', at + 1))
  for (const key of ['one', 'two']) {
    t.same(await store.read(key), { value: 'w', expiresAt: at + 1 })
    t.same(await store.readUntracked(key), { value: 'w', expiresAt: at + 1 })
    t.same(await store.extend(key, at + 2), { value: 'w', expiresAt: at + 2 })
    t.equal(await client.pExpireTime(key), at + 2 + HOUR)
  }
  t.equal(await store.bury('one', tombstone), 'logout w')
  t.equal(await client.pExpireTime(tombstone.key), at + HOUR)
  const index = await store.openIndex()
  await index.add('index', { id: 'a', value: 'v', expiresAt: at }, 0)
  t.match(await index.list('index'), exactly({ id: 'a', expiresAt: at }))
  t.ok((await client.pExpireTime('index')) >= at + HOUR)
})
