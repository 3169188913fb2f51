import { ENDED_MS } from './session-index.ts'

/*
 * An index is a hash. The value of an entry is `addedAt expiresAt value`, followed by ` ended` once the entry is ended; the
 * field `ended` has the time at which all were ended. No id has that name.
 *
 * A full server refuses every command that may need memory, except in a script that has already called one that frees some.
 * So the scripts that end entries start with HDEL.
 */

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/** Lets the key live at least until a time. */
const LIVE_UNTIL = `
local function live(ends)
  if redis.call('PEXPIRETIME', KEYS[1]) < ends then redis.call('PEXPIREAT', KEYS[1], ends) end
end`

/** Removes what has expired, adds an entry as the newest, and returns the number of entries. */
export const ADD = `${NOW}${LIVE_UNTIL}
local count, newest = 1, tonumber(ARGV[4])
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  local added, ends = string.match(fields[at + 1], '^(%d+) (%d+) ')
  if added and tonumber(ends) <= now then
    redis.call('HDEL', KEYS[1], fields[at])
  elseif added then
    count, newest = count + 1, math.max(newest, tonumber(added))
  end
end
redis.call('HSET', KEYS[1], ARGV[1], math.max(now, newest + 1) .. ' ' .. ARGV[3] .. ' ' .. ARGV[2])
live(tonumber(ARGV[3]))
return count`

/** Returns the time and the whole hash. */
export const LIST = `${NOW}
return {now, redis.call('HGETALL', KEYS[1])}`

/** Notes that all are ended, and returns the time and the whole hash. */
export const END_ALL = `${NOW}${LIVE_UNTIL}
redis.call('HDEL', KEYS[1], 'ended')
redis.call('HSET', KEYS[1], 'ended', now)
live(now + ${ENDED_MS})
return {now, redis.call('HGETALL', KEYS[1])}`

/** Notes that some are ended. */
export const END = `
for _, id in ipairs(ARGV) do
  local entry = redis.call('HGET', KEYS[1], id)
  if entry and not string.find(entry, ' ended', 1, true) then
    redis.call('HDEL', KEYS[1], '')
    redis.call('HSET', KEYS[1], id, entry .. ' ended')
  end
end`

/** Removes some. */
export const REMOVE = `return redis.call('HDEL', KEYS[1], unpack(ARGV))`

/** Returns the time, an entry, and when all were ended. */
export const LOOK = `${NOW}
return {now, redis.call('HGET', KEYS[1], ARGV[1]), redis.call('HGET', KEYS[1], 'ended')}`
