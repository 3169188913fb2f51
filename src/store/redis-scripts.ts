/** Moves an expiry and reads. Where the write is refused (no disk, no replica) the key is read all the same. */
export const EXTEND = `
local moved = redis.pcall('PEXPIREAT', KEYS[1], ARGV[1], 'GT')
local refusal = type(moved) == 'table' and moved.err
return {redis.call('GET', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1]), refusal}`

/*
 * A server that is full (maxmemory, noeviction) refuses whatever may take memory, but for a script that has removed
 * something. So the scripts below remove first: strangers may fill it with logins that they start, and must not keep
 * anybody's token from being renewed. What they add is small, and there is one of each for a session.
 */

/** Writes a key where it still holds what is expected. */
export const REPLACE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
return 1`

/** Writes a key that does not exist yet. */
export const LOCK = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return 1`

/** Removes a key where it still holds what is expected. */
export const REMOVE_IF = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

/** Removes a key, and puts a tombstone in its place. */
export const BURY = `
local value = redis.call('GET', KEYS[1])
if not value then return nil end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[1], 'PXAT', ARGV[2])
return value`

/** Reads a key and its expiry. */
export const READ = `return {redis.call('GET', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1])}`
