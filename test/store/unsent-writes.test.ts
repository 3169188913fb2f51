import { slotOf } from '../../src/store/links/cluster-slots.ts'
import { StoreUnavailable, wasSent, type ConfirmableWrites } from '../../src/store/store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { testMasters } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'
import { sideBySide } from '../support/time/side-by-side.ts'
import { until } from '../support/time/until.ts'

/** Whether a write that fails may have been executed. */
async function mayBeWritten(store: Pick<ConfirmableWrites, 'create'>, key: string): Promise<boolean> {
  const error: unknown = await store.create(key, 'value', Date.now() + 60_000).catch((cause: unknown) => cause)
  if (!(error instanceof StoreUnavailable)) throw new Error('it did not fail')
  return wasSent(error)
}

await sideBySide({
  'A write to a Redis that hangs may be executed; one that comes once that is known, or while there is no connection, is not':
    async (t) => {
      const redis = await testRedis(t)
      const store = await connectedStore(t, redis.url)
      redis.process.kill('SIGSTOP')
      t.equal(await mayBeWritten(store, 'k'), true)
      t.equal(await mayBeWritten(store, 'k'), false)
      await redis.close()
      await until(() => store.condition().why.join().includes('ECONNREFUSED'), 'it is down')
      t.equal(await mayBeWritten(store, 'k'), false)
    },

  'A write to a master of a Cluster that is down is not executed, and those to the others are': async (t) => {
    const [first, second] = await testMasters(t, 2)
    const store = await connectedStore(t, [first, second].map((node) => node?.url).join(','))
    const keys = Array.from({ length: 40 }, (_, at) => `key ${at}`)
    const [own = '', other = ''] = [0, 8192].map((from) =>
      keys.find((key) => slotOf(key) >= from && slotOf(key) < from + 8192),
    )
    await second?.close()
    await until(async () => !(await mayBeWritten(store, other)), 'its connection is lost')
    t.equal(await store.create(own, 'value', Date.now() + 60_000), true)
  },

  'A write that no replica confirms may be executed; those that fail at once after it, or wait behind it, are not':
    async (t) => {
      const redis = await testRedis(t)
      const store = await connectedStore(t, redis.url)
      const confirmed = await store.openConfirmed(1)
      const first = mayBeWritten(confirmed, 'first')
      await until(async () => (await store.read('first')) !== undefined, 'the first is written')
      t.same(await Promise.all([first, mayBeWritten(confirmed, 'second')]), [true, false])
      t.equal(await mayBeWritten(confirmed, 'third'), false)
      t.same(await store.readMany(['second', 'third']), [undefined, undefined])
    },
})
