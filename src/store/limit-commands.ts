import type { Commands } from './command.ts'
import type { MemoryValues } from './memory-values.ts'
import { evenWhenFull, NOW, runScript } from './scripts.ts'
import { MAX_QUEUE_MS, SILENCE_MS, type SharedLimits } from './shared-limits.ts'

/** The length of the minutes of {@link SharedLimits.leaseCalls}. */
const MINUTE_MS = 60_000

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

/** {@link SharedLimits} as commands. A process alone shares its limits with no other, and itself counts what it was granted. */
export const LIMITS: Commands<MemoryValues, SharedLimits> = {
  claim: {
    send: (redis, _skewMs, { key, holder, count }, limit) => runScript(redis, CLAIM, [key], [holder, count, limit]),
    reply: (reply) => reply === 1,
    memory: (_values, { count }, limit) => count <= limit,
  },
  hold: {
    send: (redis, _skewMs, holdings) =>
      Promise.all(holdings.map(({ key, holder, count }) => runScript(redis, CLAIM, [key], [holder, count, NO_LIMIT]))),
    reply: () => undefined,
    memory: () => undefined,
  },
  leaseCalls: {
    send: (redis, _skewMs, key, limit) => runScript(redis, LEASE_CALLS, [key], [limit]),
    reply: ([calls, endsInMs]: [number, number]) => ({ calls, endsInMs }),
    memory(values, key, limit) {
      const endsInMs = MINUTE_MS - (Date.now() % MINUTE_MS)
      const isFirst = values.get(key) === undefined && values.write(key, '', Date.now() + endsInMs)
      return { calls: isFirst ? limit : 0, endsInMs }
    },
  },
  enqueue: {
    send: (redis, _skewMs, key, durationMs) => runScript(redis, ENQUEUE, [key], [Math.ceil(durationMs)]),
    reply: (reply: number) => reply,
    memory: () => 0,
  },
}
