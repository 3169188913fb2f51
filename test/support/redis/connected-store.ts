import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import type { StoreLog } from '../../../src/store/link-health.ts'
import { RedisStore } from '../../../src/store/redis-store.ts'

/** A log that keeps nothing. */
export const QUIET: StoreLog = { error: () => undefined, warn: () => undefined, info: () => undefined }

/** A store that is connected to Redis, and is closed with the test. */
export async function connectedStore(t: Test, url: string, log: Partial<StoreLog> = {}): Promise<RedisStore> {
  const store = RedisStore.connect(new Changeable(url), { ...QUIET, ...log })
  t.teardown(() => store.close())
  await store.connected(5000)
  return store
}
