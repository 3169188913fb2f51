import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { CallLimit } from '../../src/limits/call-limit.ts'
import { besideKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { replace } from '../support/time/replace.ts'

const KEY = 'session:a'
const ALLOWED = { is: 'allowed' }
const refused = (retryAfterSeconds: number) => ({ is: 'refused', retryAfterSeconds })

/** Calls per minute of a process, whose clocks and store a test plays. */
function limitAlone(t: Test, perMinute = 10) {
  const world = {
    now: 1000,
    awaySince: undefined as number | undefined,
    lease: async (): Promise<{ calls: number; endsInMs: number }> => ({ calls: 3, endsInMs: 60_000 }),
  }
  replace(t, standstill, 'now', () => world.now)
  replace(t, performance, 'now', () => world.now)
  const asked: unknown[][] = []
  const store = {
    limits: { leaseCalls: (...args: unknown[]) => (asked.push(args), world.lease()) },
    unavailableSince: () => world.awaySince,
  } as unknown as ConstructorParameters<typeof CallLimit>[0]
  const limit = new CallLimit(store, perMinute)
  const take = async (times: number, key = KEY): Promise<unknown[]> => {
    const verdicts: unknown[] = []
    for (let count = 0; count < times; count++) verdicts.push(await limit.count(key))
    return verdicts
  }
  return { limit, world, asked, take }
}

await test('a quota of calls is taken in advance, and asked for again when it is used up or its minute is over', async (t) => {
  const { limit, world, asked, take } = limitAlone(t)
  t.ok(limit.count(KEY) instanceof Promise)
  await turn()
  t.strictSame(asked, [[besideKey(KEY, 'calls'), 10]])
  for (let call = 0; call < 2; call++) t.strictSame(limit.count(KEY), ALLOWED, 'at once')
  t.ok(limit.count(KEY) instanceof Promise)
  await turn()
  t.equal(asked.length, 2)
  world.now += 59_999
  t.strictSame(limit.count(KEY), ALLOWED)
  world.now += 1
  t.strictSame(await take(1), [ALLOWED])
  t.equal(asked.length, 3, 'a minute later nothing of it counts')
  t.strictSame(await take(1, 'session:b'), [ALLOWED])
  t.equal(asked.length, 4, 'each session has its own')
})

await test('once all calls of the minute are handed out, nobody is asked before it is over', async (t) => {
  const { limit, world, asked, take } = limitAlone(t)
  world.lease = async () => ({ calls: 0, endsInMs: 30_001 })
  t.strictSame(await take(1), [refused(31)])
  world.now += 30_000
  t.strictSame(limit.count(KEY), refused(1), 'at least a second')
  t.equal(asked.length, 1)
  world.now += 1
  world.lease = async () => ({ calls: 1, endsInMs: 60_000 })
  t.strictSame(await take(1), [ALLOWED])
  t.equal(asked.length, 2)
})

await test('the minute is measured from the moment at which the store was asked', async (t) => {
  const { world, asked, take } = limitAlone(t)
  world.lease = async () => {
    world.now += 40_000
    return { calls: asked.length, endsInMs: 60_000 }
  }
  t.strictSame(await take(1), [ALLOWED])
  world.now += 20_000
  t.strictSame(await take(1), [ALLOWED])
  t.equal(asked.length, 2)
})

await test('calls that come at once ask once, and share what they get', async (t) => {
  const { limit, asked } = limitAlone(t)
  const verdicts = await Promise.all(Array.from({ length: 7 }, async () => limit.count(KEY)))
  t.strictSame(verdicts.filter((verdict) => verdict === verdicts[0]).length, 7)
  t.equal(asked.length, 3, 'three calls each time')
})

await test('while the store is away each process counts on its own, and asks again when it is back', async (t) => {
  const { world, asked, take } = limitAlone(t, 2)
  world.awaySince = 1
  world.now = 5000
  t.strictSame(await take(3), [ALLOWED, ALLOWED, refused(60)])
  t.equal(asked.length, 0)
  world.awaySince = undefined
  world.lease = () => Promise.reject(new StoreUnavailable('planted'))
  world.now += 59_001
  t.strictSame(await take(1), [refused(1)])
  t.equal(asked.length, 1)
  world.lease = async () => ({ calls: 1, endsInMs: 60_000 })
  t.strictSame(await take(1), [ALLOWED])
})

await test('quotas that have ended are forgotten, once a minute', async (t) => {
  const { limit, world, asked, take } = limitAlone(t)
  const keys = ['a', 'b', 'c'].map((name) => `session:${name}`)
  world.lease = async () => ({ calls: 3, endsInMs: asked.length === 3 ? 200_000 : 1000 })
  for (const key of keys) await take(1, key)
  const forgotten: unknown[] = []
  const deleted = Object.getOwnPropertyDescriptor(Map.prototype, 'delete')?.value as (key: unknown) => boolean
  replace(t, Map.prototype, 'delete', function (this: Map<unknown, unknown>, key: unknown) {
    // A question that is answered is forgotten by another map.
    if (!(this.get(key) instanceof Promise)) forgotten.push(key)
    return deleted.call(this, key)
  })
  world.now += 59_999
  await take(1, 'session:d')
  t.strictSame(forgotten, [])
  world.now += 1
  await take(1, 'session:e')
  t.strictSame(forgotten, ['session:a', 'session:b'])
  forgotten.length = 0
  world.now += 59_999
  await take(1, 'session:f')
  t.strictSame(forgotten, [])
  t.strictSame(limit.count('session:c'), ALLOWED, 'it goes on')
})
