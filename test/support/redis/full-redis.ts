import type { Test } from 'tap'
import { storeClient } from './store-client.ts'

const MAX_BYTES = 4 * 1_048_576
/** Sizes of values: large ones first, then small ones, until nothing fits. */
const PIECES = [100_000, 1000, 10] as const

/** A full Redis. */
export interface FullRedis {
  readonly maxBytes: number
  /** Fills it once more, because the memory of connections varies and may leave room for a moment. */
  fillUp(): Promise<void>
  /** Makes room again. */
  empty(): Promise<void>
}

/** Fills a Redis to its limit, as many started logins would. It evicts nothing. */
export async function fillRedis(t: Test, url: string): Promise<FullRedis> {
  const client = await storeClient(t, { redis: { url } })
  await client.configSet({ 'maxmemory-policy': 'noeviction', maxmemory: String(MAX_BYTES) })
  let keys = 0
  const fill = async (bytes: number): Promise<void> => {
    for (;;) {
      try {
        await client.set(`junk:${++keys}`, 'x'.repeat(bytes))
      } catch (error) {
        if (!(error as Error).message.startsWith('OOM')) throw error
        return
      }
    }
  }
  for (const bytes of PIECES) await fill(bytes)
  return {
    maxBytes: MAX_BYTES,
    fillUp: () => fill(10),
    async empty() {
      const junk = await client.keys('junk:*')
      await client.del(junk)
    },
  }
}
