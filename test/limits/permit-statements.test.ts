import { mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { SessionPermits } from '../../src/limits/session-permits.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { SILENCE_MS } from '../../src/store/shared-limits.ts'
import { StoreUnavailable } from '../../src/store/store.ts'

await test('statements go to the store in parts of 500, and a store that fails is told the same again', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const parts: number[] = []
  const permits = new SessionPermits(
    {
      limits: {
        ...new MemoryStore().limits,
        hold: async ({ length }) => {
          parts.push(length)
          throw new StoreUnavailable('planted')
        },
      },
      onChange: () => undefined,
      unavailableSince: () => undefined,
    },
    1,
  )
  for (let user = 0; user < 501; user++) t.ok(await permits.acquire(`session:${user}`))
  mock.timers.tick(SILENCE_MS / 2)
  await setImmediate()
  t.same(parts, [500], 'no more while the store is away')
  mock.timers.tick(SILENCE_MS / 2)
  await setImmediate()
  t.same(parts, [500, 500])
})
