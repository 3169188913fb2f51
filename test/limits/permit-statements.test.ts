import { mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { SessionPermits } from '../../src/limits/session-permits.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { SILENCE_MS, type SharedLimits } from '../../src/store/shared-limits.ts'
import { StoreUnavailable } from '../../src/store/store.ts'

/** Permits of 501 sessions, whose statements go where a test says. */
async function permitsOf(t: Test, hold: SharedLimits['hold'], unavailableSince?: number): Promise<void> {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const store = {
    limits: { ...new MemoryStore().limits, hold },
    onChange: () => undefined,
    unavailableSince: () => unavailableSince,
  }
  const permits = new SessionPermits(store, 1)
  for (let user = 0; user < 501; user++) t.ok(await permits.acquire(`session:${user}`))
}

await test('statements go to the store in parts of 500, and a store that fails is told the same again', async (t) => {
  const parts: number[] = []
  const hold = async ({ length }: { readonly length: number }): Promise<void> => {
    parts.push(length)
    throw new StoreUnavailable('planted')
  }
  await permitsOf(t, hold, 1)
  mock.timers.tick(SILENCE_MS / 2)
  await setImmediate()
  t.same(parts, [500], 'no more while the store is away')
  mock.timers.tick(SILENCE_MS / 2)
  await setImmediate()
  t.same(parts, [500, 500])
})

await test('a master of a Cluster that is away keeps no statement from the others', async (t) => {
  const parts: number[] = []
  await permitsOf(t, async (holdings) => {
    parts.push(holdings.length)
    if (holdings.some(({ key }) => key.includes('session:7}'))) throw new StoreUnavailable('planted')
  })
  mock.timers.tick(SILENCE_MS / 2)
  await setImmediate()
  t.same(parts, [500, 1])
})
