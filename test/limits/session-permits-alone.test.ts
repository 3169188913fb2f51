import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { SessionPermits } from '../../src/limits/session-permits.ts'
import { besideKey } from '../../src/store/keys.ts'
import { SILENCE_MS } from '../../src/store/shared-limits.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { replace } from '../support/time/replace.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const KEY = 'session:a'

/** The permits of a process, whose store a test plays. */
function permitsAlone(t: Test, limit = 2) {
  const intervals = new Set<() => void>()
  replace(t, globalThis, 'setInterval', (call: () => void, ms: number) => {
    t.equal(ms, 10_000)
    intervals.add(call)
    return { unref: () => call }
  })
  replace(t, globalThis, 'clearInterval', (call: () => void) => void intervals.delete(call))
  const world = {
    awaySince: undefined as number | undefined,
    claim: async (): Promise<boolean> => true,
    hold: async (): Promise<void> => undefined,
  }
  const listeners: ((key: string | undefined) => void)[] = []
  const calls: unknown[][] = []
  const names = new Set<string>()
  const noted = ({ key, holder, count }: { key: string; holder: string; count: number }): unknown => {
    names.add(holder)
    return [key, count]
  }
  const store = {
    limits: {
      claim: (holding: Parameters<typeof noted>[0], max: number) => {
        calls.push(['claim', noted(holding), max])
        return world.claim()
      },
      hold: (holdings: readonly Parameters<typeof noted>[0][]) => {
        calls.push(['hold', ...holdings.map(noted)])
        return world.hold()
      },
    },
    onChange: (listener: (key: string | undefined) => void) => listeners.push(listener),
    unavailableSince: () => world.awaySince,
  } as unknown as ConstructorParameters<typeof SessionPermits>[0]
  const permits = new SessionPermits(store, limit)
  const changed = (key?: string): void => {
    for (const listener of listeners) listener(key)
  }
  const renew = (): void => {
    for (const call of intervals) call()
  }
  return { permits, world, names, changed, renew, intervals, logged: () => calls.splice(0) }
}

const claim = (count: number, max = 2) => ['claim', [besideKey(KEY, 'relays'), count], max]
const hold = (count: number, key = KEY) => ['hold', [besideKey(key, 'relays'), count]]

await test('a permit is claimed for as many as this process then has, and given back once', async (t) => {
  const { permits, names, logged, intervals } = permitsAlone(t)
  const first = await permits.acquire(KEY)
  const second = await permits.acquire(KEY)
  t.strictSame(logged(), [claim(1), claim(2)])
  t.equal(await permits.acquire(KEY), undefined)
  t.strictSame(logged(), [], 'the store is not asked beyond the limit')
  t.equal(intervals.size, 1)
  first?.()
  first?.()
  t.strictSame(logged(), [hold(1)])
  await turn()
  second?.()
  t.strictSame(logged(), [hold(0)])
  await turn()
  t.strictSame([logged(), intervals.size], [[], 0], 'nothing is held any more')
  t.ok(await permits.acquire(KEY))
  t.equal(intervals.size, 1, 'what is held now is stated again and again')
  t.equal(names.size, 1)
  t.match([...names][0], /^[\w-]{12}$/)
  t.notSame(names, permitsAlone(t).names)
})

await test('claims that are under way count against the limit, and one that is refused does not afterwards', async (t) => {
  const { permits, world, logged, intervals } = permitsAlone(t)
  const gate = Promise.withResolvers<boolean>()
  world.claim = () => gate.promise
  const claims = [permits.acquire(KEY), permits.acquire(KEY)]
  t.equal(await permits.acquire(KEY), undefined)
  t.strictSame(logged(), [claim(1), claim(2)])
  gate.resolve(false)
  t.strictSame(await Promise.all(claims), [undefined, undefined])
  t.strictSame([logged(), intervals.size], [[], 0])
  world.claim = async () => true
  t.ok(await permits.acquire(KEY))
  t.strictSame(logged(), [claim(1)])
})

await test('where one of two claims is refused, the store is told what is held in fact', async (t) => {
  const { permits, world, logged } = permitsAlone(t)
  const verdicts = [false, true]
  world.claim = async () => verdicts.shift() === true
  const [refused, granted] = await Promise.all([permits.acquire(KEY), permits.acquire(KEY)])
  t.equal(refused, undefined)
  t.ok(granted)
  t.strictSame(logged(), [claim(1), claim(2), hold(1)])
})

await test('a permit that is given back while another claim is under way is stated after it', async (t) => {
  const { permits, world, logged, renew } = permitsAlone(t)
  const first = await permits.acquire(KEY)
  logged()
  const gate = Promise.withResolvers<boolean>()
  world.claim = () => gate.promise
  const second = permits.acquire(KEY)
  t.strictSame(logged(), [claim(2)])
  renew()
  t.strictSame(logged(), [hold(2)], 'the store may have granted it')
  await turn()
  first?.()
  t.strictSame(logged(), [])
  gate.resolve(true)
  await second
  t.strictSame(logged(), [hold(1)])
  await turn()
  t.strictSame(logged(), [])
})

await test('while the store is away a permit is granted up to the limit, and all are stated once it is back', async (t) => {
  const { permits, world, logged, changed } = permitsAlone(t)
  changed()
  t.strictSame(logged(), [], 'who holds nothing says nothing')
  world.claim = () => Promise.reject(new StoreUnavailable('planted'))
  world.awaySince = 1
  t.ok(await permits.acquire(KEY))
  t.ok(await permits.acquire(KEY))
  t.equal(await permits.acquire(KEY), undefined)
  logged()
  changed()
  t.strictSame(logged(), [], 'it is not back')
  world.awaySince = undefined
  changed('a key')
  t.strictSame(logged(), [], 'that concerns a key')
  changed()
  t.strictSame(logged(), [hold(2)])
})

await test('what is held is stated again every ten seconds, and each session once', async (t) => {
  const { permits, renew, logged, world } = permitsAlone(t)
  await permits.acquire(KEY)
  const other = await permits.acquire('session:b')
  logged()
  renew()
  t.strictSame(logged(), [['hold', hold(1)[1], hold(1, 'session:b')[1]]])
  await turn()
  other?.()
  await turn()
  logged()
  const gate = Promise.withResolvers<void>()
  world.hold = () => gate.promise
  renew()
  t.strictSame(logged(), [hold(1)])
  gate.resolve()
  await turn()
  t.strictSame(logged(), [])
})

await test('a statement that failed is not repeated before the next renewal', async (t) => {
  const { permits, renew, logged, world } = permitsAlone(t)
  await permits.acquire(KEY)
  logged()
  world.hold = () => Promise.reject(new StoreUnavailable('planted'))
  renew()
  await turn()
  t.strictSame(logged(), [hold(1)])
  renew()
  t.strictSame(logged(), [hold(1)])
})

await test('a permit that is given back while the store is away is stated until the store has heard of it', async (t) => {
  const { permits, renew, changed, logged, world, intervals } = permitsAlone(t)
  const permit = await permits.acquire(KEY)
  logged()
  world.hold = () => Promise.reject(new StoreUnavailable('planted'))
  world.awaySince = 1
  permit?.()
  await turn()
  t.strictSame([logged(), intervals.size], [[hold(0)], 1])
  renew()
  await turn()
  t.strictSame([logged(), intervals.size], [[hold(0)], 1])
  world.hold = async () => undefined
  world.awaySince = undefined
  changed()
  await turn()
  t.strictSame([logged(), intervals.size], [[hold(0)], 0])
})

await test('a session without sockets of which the store cannot be told is stated until the store forgets it, and no longer', async (t) => {
  const pass = stoppedClocks(t)
  const { permits, renew, logged, world, intervals } = permitsAlone(t)
  // Its user may have no right to the commands.
  world.hold = () => Promise.reject(new StoreUnavailable('planted'))
  const permit = await permits.acquire(KEY)
  const later = async (): Promise<[unknown, number]> => {
    logged()
    pass(SILENCE_MS)
    renew()
    await turn()
    return [logged(), intervals.size]
  }
  for (let count = 0; count < 2; count++) t.strictSame(await later(), [[hold(1)], 1], 'what is held is stated for ever')
  permit?.()
  await turn()
  t.strictSame(await later(), [[hold(0)], 1])
  pass(1)
  t.strictSame(await later(), [[hold(0)], 0])
  t.strictSame(await later(), [[], 0])
})

await test('of many statements, those that failed or were not sent are made again', async (t) => {
  const { permits, changed, logged, world, intervals } = permitsAlone(t)
  const taken = await Promise.all(Array.from({ length: 1001 }, (_, at) => permits.acquire(`session:${at}`)))
  const lost = (): Promise<void> => {
    world.awaySince = 1
    return Promise.reject(new StoreUnavailable('planted'))
  }
  const back = async (): Promise<string[]> => {
    await turn()
    logged()
    world.awaySince = undefined
    changed()
    await turn()
    return logged().flatMap(([, ...holdings]) => (holdings as [string, number][]).map(([key]) => key))
  }
  world.hold = lost
  for (const permit of taken) permit?.()
  world.hold = async () => void (world.hold = lost)
  t.equal((await back()).length, 1000, 'the second batch fails, and the third is not sent')
  t.equal(intervals.size, 1)
  world.hold = async () => undefined
  t.equal((await back()).length, 501)
  t.equal(intervals.size, 0)
})

await test('what is given back while a statement is under way is stated once that has arrived', async (t) => {
  const { permits, renew, logged, world, intervals } = permitsAlone(t)
  const first = await permits.acquire(KEY)
  logged()
  const gate = Promise.withResolvers<void>()
  world.hold = () => gate.promise
  renew()
  first?.()
  t.strictSame(logged(), [hold(1)])
  gate.resolve()
  await turn()
  t.strictSame([logged(), intervals.size], [[hold(0)], 0])
})
