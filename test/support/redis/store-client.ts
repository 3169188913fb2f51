import type { Test } from 'tap'
import type { RedisProcess } from '../../../sandbox/redis-process.ts'
import { createClient } from './client.ts'

/** A Redis client of the test for the store of a world. */
export async function storeClient(t: Test, { redis }: { readonly redis: Pick<RedisProcess, 'url'> | undefined }) {
  const client = await createClient({ url: redis?.url ?? '' }).connect()
  t.teardown(() => client.close())
  return client
}
