import type { RedisCommands } from './links/redis-link.ts'
import { evenWhenFull, NOW, runScript, type Ask } from './scripts.ts'

/** How many permits of a key one instance holds. A later statement of the same holder replaces the earlier one. */
interface Holding {
  readonly key: string
  /** Identifies the instance. At most 32 characters of `A-Za-z0-9_-`. */
  readonly holder: string
  readonly count: number
}

/** Calls of the current minute that one instance may spend without asking again. */
export interface CallLease {
  /** 0 when all calls of the minute have been leased. */
  readonly calls: number
  /** Time from the store's reply to the end of the minute, which ends the lease as well. */
  readonly endsInMs: number
}

/**
 * Limits that hold over all instances of a store, measured by the store's clock. The operations are atomic, succeed even
 * when the store is full, and reject with StoreUnavailable while it is unavailable.
 */
export interface SharedLimits {
  /**
   * Claims permits for a holder: `count` in all. Returns false, and leaves the holder with those it has, if it would then hold
   * more than `limit` together with the others. Holders that have stated nothing for {@link SILENCE_MS} do not count.
   */
  claim(holding: Holding, limit: number): Promise<boolean>
  /** States what a holder has, whatever the limit; 0 gives all back. Many statements are sent in one batch. */
  hold(holdings: readonly Holding[]): Promise<void>
  /** Leases half of the calls that are left of `limit` in the current minute of the store's clock, and at least one. */
  leaseCalls(key: string, limit: number): Promise<CallLease>
  /**
   * Takes the next stretch of time in a queue, of which no more than {@link MAX_QUEUE_MS} are ever ahead: later callers
   * share its end.
   * @returns after how many milliseconds it begins: 0 unless earlier stretches have yet to end
   */
  enqueue(key: string, durationMs: number): Promise<number>
}

/** A holder that was silent for this long is considered dead. */
const SILENCE_MS = 25_000

/** The length of the minutes of {@link SharedLimits.leaseCalls}. */
export const MINUTE_MS = 60_000

/** The longest queue of {@link SharedLimits.enqueue}, and the longest time that a page is asked to stay away. */
export const MAX_QUEUE_MS = 3_600_000

/*
 * All of these scripts read with GETDEL and write the value back. GETDEL counts as a write, so the server does not track the
 * key (CLIENT TRACKING).
 */

/**
 * Sets how many permits a holder has, unless all holders together would then have more than the limit. The value has an entry
 * `holder:count:time` for every holder. Entries from the future are those of a server whose clock was ahead of this one's.
 */
const CLAIM = evenWhenFull(`${NOW}
local holder, count, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local own, others, entries = 0, 0, {}
for who, held, at in string.gmatch(redis.call('GETDEL', KEYS[1]) or '', '([^ :]+):(%d+):(%d+)') do
  if math.abs(now - at) < ${SILENCE_MS} then
    if who == holder then
      own = tonumber(held)
    else
      others = others + held
      entries[#entries + 1] = who .. ':' .. held .. ':' .. at
    end
  end
end
local granted = others + count <= limit
if granted then own = count end
if own > 0 then entries[#entries + 1] = holder .. ':' .. own .. ':' .. now end
if #entries > 0 then redis.call('SET', KEYS[1], table.concat(entries, ' '), 'PX', ${SILENCE_MS}) end
return granted and 1 or 0`)

/** Leases calls of the current minute. The value is the number of those leased so far. */
const LEASE_CALLS = evenWhenFull(`${NOW}
local limit, left = tonumber(ARGV[1]), ${MINUTE_MS} - now % ${MINUTE_MS}
local leased = tonumber(redis.call('GETDEL', KEYS[1]) or 0)
local calls = math.max(0, math.min(limit - leased, math.max(1, math.floor((limit - leased) / 2))))
redis.call('SET', KEYS[1], leased + calls, 'PX', left)
return {calls, left}`)

/** Appends a stretch of time to a queue, up to its longest. The value is when the last stretch ends. */
const ENQUEUE = evenWhenFull(`${NOW}
local at = math.max(now, tonumber(redis.call('GETDEL', KEYS[1]) or 0))
local left = math.min(at - now + ARGV[1], ${MAX_QUEUE_MS})
if left > 0 then redis.call('SET', KEYS[1], now + left, 'PX', left) end
return at - now`)

/** More permits than any limit allows. */
const NO_LIMIT = 1_000_000_000
/** Statements that are sent at once. More would delay what else this process has to do. */
const BATCH = 500

/** {@link SharedLimits} in Redis. */
export function redisLimits(ask: Ask<RedisCommands>): SharedLimits {
  return {
    async claim({ key, holder, count }, limit) {
      return (await ask((redis) => runScript(redis, CLAIM, [key], [holder, count, limit]))) === 1
    },
    async hold(holdings) {
      for (let start = 0; start < holdings.length; start += BATCH) {
        const batch = holdings.slice(start, start + BATCH)
        await ask((redis) =>
          Promise.all(batch.map(({ key, holder, count }) => runScript(redis, CLAIM, [key], [holder, count, NO_LIMIT]))),
        )
      }
    },
    async leaseCalls(key, limit) {
      const reply = await ask((redis) => runScript(redis, LEASE_CALLS, [key], [limit]))
      const [calls, endsInMs] = reply as [number, number]
      return { calls, endsInMs }
    },
    async enqueue(key, durationMs) {
      return (await ask((redis) => runScript(redis, ENQUEUE, [key], [Math.ceil(durationMs)]))) as number
    },
  }
}
