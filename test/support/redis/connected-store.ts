import type { Test } from 'tap'
import { Changeable, type Changing } from '../../../src/config/changing.ts'
import type { StoreLog } from '../../../src/store/servers/link-health.ts'
import { RedisStore } from '../../../src/store/redis-store.ts'

/** A log that keeps nothing. */
export const QUIET: StoreLog = { error: () => undefined, warn: () => undefined, info: () => undefined }

/** A store that is connected to Redis, whatever its topology, and is closed with the test. */
export async function connectedStore(
  t: Test,
  url: string | Changing<string>,
  log: Partial<StoreLog> = {},
): Promise<RedisStore> {
  const store = RedisStore.connect(typeof url === 'string' ? new Changeable(url) : url, { ...QUIET, ...log })
  t.teardown(() => store.close())
  await store.connected(10_000)
  return store
}
