import { createClient } from 'redis'
import type { Test } from 'tap'

const MAX_BYTES = 4 * 1_048_576
/** Large pieces first, then small ones, until nothing fits any more. */
const PIECES = [100_000, 1000, 10] as const

/** A Redis that has no room left. */
export interface FullRedis {
  readonly maxBytes: number
  /** Fills it once more: what Redis keeps for its connections comes and goes, so that there may be room for a moment. */
  fillUp(): Promise<void>
  /** Makes room again. */
  empty(): Promise<void>
}

/** Fills a Redis to its limit, as strangers would with logins that they start; it refuses to make room by itself. */
export async function fillRedis(t: Test, url: string): Promise<FullRedis> {
  const client = await createClient({ url }).connect()
  t.teardown(() => client.close())
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
