import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { connectedStore } from '../support/redis/connected-store.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'
import { exactly } from '../support/exactly.ts'

/** Longer than the command timeout of Redis. */
const BLOCKED_MS = 2600

/** Blocks this thread, and so its event loop. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

await test('a process whose event loop was blocked does not report Redis as unavailable', async (t) => {
  const redis = await testRedis(t)
  const warnings: object[] = []
  const store = await connectedStore(t, redis.url, { warn: (details: object) => void warnings.push(details) })
  let changes = 0
  store.onChange((key) => {
    if (key === undefined) changes++
  })
  await store.create('key', 'value', Date.now() + 60_000)
  for (let round = 0; round < 3; round++) {
    // One read begins before the block and one after it, at different moments of the health check's second.
    await delay(round * 340)
    const before = store.read('key')
    block(BLOCKED_MS)
    t.match(await before, { value: 'value' })
    t.match(await store.read('key'), { value: 'value' })
  }
  t.same(warnings, [])
  t.equal(store.unavailableSince(), undefined)
  t.equal(changes, 0, 'no cached value is invalidated')

  redis.process.kill('SIGSTOP')
  await t.rejects(store.read('key'), { name: 'StoreUnavailable' })
  t.match(warnings, exactly({ reason: 'deadline' }))
  redis.process.kill('SIGCONT')
  await until(() => store.unavailableSince() === undefined)
})
