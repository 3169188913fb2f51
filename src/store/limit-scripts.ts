import { MAX_QUEUE_MS, MINUTE_MS, SILENCE_MS } from './shared-limits.ts'

/*
 * All of these scripts read with GETDEL and write the value back. This has two reasons. GETDEL counts as a write, so the server
 * neither tracks the key (CLIENT TRACKING) nor refuses the SET when it is full. What the scripts add is small, and bounded per
 * session.
 */

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/**
 * Sets how many permits a holder has, unless all holders together would then have more than the limit. The value has an entry
 * `holder:count:time` for every holder. Entries from the future are those of a server whose clock was ahead of this one's.
 */
export const CLAIM = `${NOW}
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
return granted and 1 or 0`

/** Leases calls of the current minute. The value is the number of those leased so far. */
export const LEASE_CALLS = `${NOW}
local limit, left = tonumber(ARGV[1]), ${MINUTE_MS} - now % ${MINUTE_MS}
local leased = tonumber(redis.call('GETDEL', KEYS[1]) or 0)
local calls = math.max(0, math.min(limit - leased, math.max(1, math.floor((limit - leased) / 2))))
redis.call('SET', KEYS[1], leased + calls, 'PX', left)
return {calls, left}`

/** Appends a stretch of time to a queue, up to its longest. The value is when the last stretch ends. */
export const ENQUEUE = `${NOW}
local at = math.max(now, tonumber(redis.call('GETDEL', KEYS[1]) or 0))
local left = math.min(at - now + ARGV[1], ${MAX_QUEUE_MS})
if left > 0 then redis.call('SET', KEYS[1], now + left, 'PX', left) end
return at - now`
