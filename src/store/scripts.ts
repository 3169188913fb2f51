import type { Connection } from './links/connection.ts'
import { LEFT_MS } from './keys.ts'

/** Runs a command against a deadline. @throws StoreUnavailable */
export type Ask<Commands> = <Reply>(command: (redis: Commands) => Promise<Reply>) => Promise<Reply>

/**
 * Runs a script by its text. By its digest a server may not know it: a replica that was promoted, or another master of a Cluster.
 * A second try with the text would come too late for the WAIT, or the CLIENT CACHING, that was sent with the first. The text
 * costs the server about a microsecond.
 */
export function runScript(
  redis: Pick<Connection, 'eval'>,
  script: string,
  keys: readonly string[],
  args: readonly (string | number)[] = [],
): Promise<unknown> {
  return redis.eval(script, { keys: [...keys], arguments: args.map(String) })
}

/**
 * Lets a script run on a full server (maxmemory, noeviction), which refuses every other command that may need memory
 * (redis.io/docs/latest/develop/programmability/eval-intro: script flags). Otherwise strangers could fill the server with
 * logins that they start, and so prevent the renewal of every token. For scripts that add little, bounded per session.
 */
export function evenWhenFull(script: string): string {
  return `#!lua flags=allow-oom\n${script}`
}

/** Writes a key if it does not exist yet. @param expiresAt by the clock of the server (epoch ms) @returns null if it exists */
export function createKey(
  redis: Pick<Connection, 'set'>,
  key: string,
  value: string,
  expiresAt: number,
): Promise<string | null> {
  return redis.set(key, value, { condition: 'NX', expiration: { type: 'PXAT', value: expiresAt } })
}

/** Sets `now`, the server's time (epoch ms). */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/** Extends the expiry of a key and reads it. The script reads even if the server refuses the write (no disk, no replica). */
export const EXTEND = `
local moved = redis.pcall('PEXPIREAT', KEYS[1], ARGV[1], 'GT')
local refusal = type(moved) == 'table' and moved.err
return {redis.call('GET', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1]), refusal}`
/** The reply to {@link EXTEND}: what {@link READ} replies, and the error of a server that refuses the write. */
export type ExtendReply = [...ReadReply, refusal: string | null]

/** Writes a key if it still holds the expected value, or the new one already, from a try whose reply was lost. */
export const REPLACE = evenWhenFull(`
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] and held ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
return 1`)

/** Writes a key if it does not exist yet, or has the same value: its owner may not have heard of it. */
export const LOCK = evenWhenFull(`
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)

const COUNT = `
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count == tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[2], 'NX') end
return count`
const COUNT_EVEN_WHEN_FULL = evenWhenFull(COUNT)

/** Counts, and sets the expiry of a new counter. */
export function countScript(isEvenWhenFull: boolean): string {
  return isEvenWhenFull ? COUNT_EVEN_WHEN_FULL : COUNT
}

/** Writes what expires by itself, for a WAIT of the same connection. */
export const MARK = evenWhenFull(`
return redis.call('SET', KEYS[1], '', 'PX', 1000)`)

/** Removes a key if it still holds the expected value. */
export const REMOVE_IF = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

/**
 * Removes a key, writes its tombstone and what is left of it, publishes the end, and returns what is left. If the key does not
 * exist, returns what is there from before. A Redis user without the right to publish can still remove.
 */
export const BURY = evenWhenFull(`
local value = redis.call('GET', KEYS[1])
if not value then return redis.call('GET', KEYS[3]) end
local left = ARGV[1] .. ' ' .. value
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[1], 'PXAT', ARGV[2])
redis.call('SET', KEYS[3], left, 'PX', ${LEFT_MS})
redis.pcall('PUBLISH', ARGV[3], KEYS[1] .. ' ' .. ARGV[1])
return left`)

/** Reads a key and its expiry. */
export const READ = `return {redis.call('GET', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1])}`
/** The reply to {@link READ}. The expiry is in epoch ms; it is negative without a key, or without an expiry. */
export type ReadReply = [value: string | null, expiresAt: number]
