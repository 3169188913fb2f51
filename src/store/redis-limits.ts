import { createHash } from 'node:crypto'
import { CLAIM, ENQUEUE, LEASE_CALLS } from './limit-scripts.ts'
import { replyCode, type RedisCommands } from './redis-link.ts'
import type { CallLease, Holding, SharedLimits } from './shared-limits.ts'

/** Runs commands against a deadline. @throws StoreUnavailable */
type Ask = <Reply>(command: (redis: RedisCommands) => Promise<Reply>) => Promise<Reply>

interface Script {
  readonly text: string
  readonly sha: string
}

/** More permits than any limit allows. */
const NO_LIMIT = '1000000000'
/** Statements that are sent at once. More would delay what else this process has to do. */
const BATCH = 500

/** {@link SharedLimits} in Redis. */
export class RedisLimits implements SharedLimits {
  readonly #ask: Ask

  constructor(ask: Ask) {
    this.#ask = ask
  }

  async claim({ key, holder, count }: Holding, limit: number): Promise<boolean> {
    return (await this.#ask((redis) => run(redis, SCRIPTS.claim, key, [holder, String(count), String(limit)]))) === 1
  }

  async hold(holdings: readonly Holding[]): Promise<void> {
    for (let start = 0; start < holdings.length; start += BATCH) {
      const batch = holdings.slice(start, start + BATCH)
      await this.#ask((redis) =>
        Promise.all(
          batch.map(({ key, holder, count }) => run(redis, SCRIPTS.claim, key, [holder, String(count), NO_LIMIT])),
        ),
      )
    }
  }

  async leaseCalls(key: string, limit: number): Promise<CallLease> {
    const reply = await this.#ask((redis) => run(redis, SCRIPTS.leaseCalls, key, [String(limit)]))
    const [calls, endsInMs] = reply as [number, number]
    return { calls, endsInMs }
  }

  async enqueue(key: string, durationMs: number): Promise<number> {
    const reply = await this.#ask((redis) => run(redis, SCRIPTS.enqueue, key, [String(Math.ceil(durationMs))]))
    return reply as number
  }
}

const SCRIPTS = { claim: script(CLAIM), leaseCalls: script(LEASE_CALLS), enqueue: script(ENQUEUE) }

function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/** Runs a script on one key by its digest, or by its text where the server does not know it yet. */
async function run(redis: RedisCommands, { text, sha }: Script, key: string, args: string[]): Promise<unknown> {
  const call = { keys: [key], arguments: args }
  try {
    return await redis.evalSha(sha, call)
  } catch (error) {
    if (replyCode(error) !== 'NOSCRIPT') throw error
    return redis.eval(text, call)
  }
}
