import { test } from 'tap'
import { LastingConnection } from '../../src/store/links/lasting-connection.ts'
import { until } from '../support/time/until.ts'

await test('a server of Redis that cannot be reached is tried more and more rarely', async (t) => {
  // The pauses are then as long as they may be.
  t.intercept(Math, 'random', { value: () => 0 })
  const tries: number[] = []
  const connection = new LastingConnection({
    async find() {
      tries.push(performance.now())
      return undefined
    },
  })
  t.teardown(() => connection.close())
  connection.next().catch(() => undefined)
  await until(() => tries.length === 4)
  for (const [at, leastMs] of [100, 200, 400].entries()) {
    const pausedMs = (tries[at + 1] ?? 0) - (tries[at] ?? 0)
    // A timer may be a little early.
    t.ok(pausedMs > leastMs - 5, `${pausedMs} ms before try ${at + 2}`)
  }
})
