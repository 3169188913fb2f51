import type { RedisArgument } from '@redis/client'
import type { Commands } from './command.ts'
import { ENDED_CHANNEL, LEFT_MS } from './keys.ts'
import { replyCode, type RedisCommands } from './links/redis-link.ts'
import { markOf } from './marked-reading.ts'
import type { MemoryValues } from './memory-values.ts'
import { evenWhenFull, NOW, runScript } from './scripts.ts'
import type { ConfirmableWrites, DataCommands, StoredValue } from './store.ts'

/** Reads a key and its expiry. */
const READ = `return {redis.call('GET', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1])}`

/** Extends the expiry of a key and reads it. The script reads even if the server refuses the write (no disk, no replica). */
const EXTEND = `
local moved = redis.pcall('PEXPIREAT', KEYS[1], ARGV[1], 'GT')
local refusal = type(moved) == 'table' and moved.err
return {redis.call('GET', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1]), refusal}`

/**
 * Writes a key if it still holds the expected value, or the new one already, from a try whose reply was lost. Without a time its
 * expiry stays.
 */
const REPLACE = evenWhenFull(`
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] and held ~= ARGV[2] then return 0 end
if ARGV[3] then redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
else redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL') end
return 1`)

/** Writes a key if it does not exist yet, or has the same value: its owner may not have heard of it. */
const LOCK = evenWhenFull(`
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)

/** Counts, and sets the expiry of a new counter. A Redis user without the right to PEXPIRE sets it with SET. */
const COUNT = `
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count ~= tonumber(ARGV[1]) then return count end
local ends = redis.pcall('PEXPIRE', KEYS[1], ARGV[2], 'NX')
if type(ends) == 'table' then redis.call('SET', KEYS[1], count, 'PX', ARGV[2]) end
return count`
const COUNT_EVEN_WHEN_FULL = evenWhenFull(COUNT)

/** Removes a key if it still holds the expected value. */
const REMOVE_IF = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

/**
 * Removes a key, writes its tombstone and what is left of it, publishes the end, and returns what is left. If the key does not
 * exist, returns what is there from before. A Redis user without the right to publish can still remove.
 */
const BURY = evenWhenFull(`
local value = redis.call('GET', KEYS[1])
if not value then return redis.call('GET', KEYS[3]) end
local left = ARGV[1] .. ' ' .. value
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[1], 'PXAT', ARGV[2])
redis.call('SET', KEYS[3], left, 'PX', ${LEFT_MS})
redis.pcall('PUBLISH', ARGV[3], KEYS[1] .. ' ' .. ARGV[1])
return left`)

/** Writes what is short and ends by itself. */
const SET = evenWhenFull("return redis.call('SET', KEYS[1], ARGV[1], ARGV[2], ARGV[3])")

/**
 * {@link BURY} key by key. While a slot of a Cluster moves, one server has the key, and the other is to have the rest, so neither
 * runs the script: for as long as nobody moves on or back, none of its sessions could end.
 */
async function buryInSteps(redis: Pick<RedisCommands, 'send'>, keys: BuriedKeys, reason: string, ends: number) {
  const [key, tombstoneKey, leftKey] = keys
  for (;;) {
    const value = (await redis.send(key, ['GET', key])) as string | null
    if (value === null) return redis.send(leftKey, ['GET', leftKey])
    const left = `${reason} ${value}`
    await runScript(redis, SET, [tombstoneKey], [reason, 'PXAT', ends])
    await runScript(redis, SET, [leftKey], [left, 'PX', LEFT_MS])
    // It may have changed meanwhile.
    if (!isOne(await runScript(redis, REMOVE_IF, [key], [value]))) continue
    await redis.send(key, ['PUBLISH', ENDED_CHANNEL, `${key} ${reason}`]).catch(() => undefined)
    return left
  }
}

type BuriedKeys = readonly [key: string, tombstoneKey: string, leftKey: string]

/**
 * Reads a value unless it begins with the mark that is known already, and the server's time. Where the mark is known, the value
 * is not read, so that its length costs nothing; a Redis user without the right to GETRANGE pays for it.
 */
const READ_MARKED = `${NOW}
local mark = ARGV[1] .. ' '
local start = mark ~= ' ' and redis.pcall('GETRANGE', KEYS[1], 0, #mark - 1)
if start == mark then return {1, false, now} end
local value = redis.call('GET', KEYS[1])
if mark ~= ' ' and value and string.sub(value, 1, #mark) == mark then return {1, false, now} end
return {0, value, now}`

/** Replaces the value with a mark. A Redis user without the right to publish can still write. */
const REPLACE_MARKED = evenWhenFull(`
if string.match(redis.call('GET', KEYS[1]) or '', '^%S*') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.pcall('PUBLISH', ARGV[4], ARGV[5])
return 1`)

/** A value and its expiry by the clock of the master, negative without a key or without an expiry; and what {@link EXTEND} adds. */
type ReadReply = [value: string | Buffer | null, expiresAt: number, refusal?: string | null]

function storedValue(
  [value, expiresAt]: ReadReply,
  skewMs: (key: string) => number,
  key: string,
): StoredValue | undefined {
  if (value === null || expiresAt < 0) return undefined
  const text = typeof value === 'string' ? value : value.toString('latin1')
  return { value: text, expiresAt: expiresAt - skewMs(key) }
}

/** A value as Redis gets it, each character as a byte. Most are texts of ASCII, which go out as they are. */
function asBytes(value: string): RedisArgument {
  return /^[ -~]*$/.test(value) ? value : Buffer.from(value, 'latin1')
}

function isOne(reply: unknown): boolean {
  return reply === 1
}

/** The commands on values by key. */
export const DATA: Commands<MemoryValues, DataCommands> = {
  create: {
    send: (redis, skewMs, key, value, expiresAt) =>
      redis.send(key, ['SET', key, asBytes(value), 'PXAT', String(expiresAt + skewMs(key)), 'NX']),
    reply: (reply) => reply !== null,
    memory: (values, key, value, expiresAt) => values.get(key) === undefined && values.write(key, value, expiresAt),
  },
  lock: {
    send: (redis, _skewMs, key, owner, ttlMs) => runScript(redis, LOCK, [key], [owner, ttlMs]),
    reply: isOne,
    memory(values, key, owner, ttlMs) {
      const held = values.get(key)?.value
      return (held === undefined || held === owner) && values.write(key, owner, Date.now() + ttlMs)
    },
  },
  read: {
    send: (redis, _skewMs, key) => Promise.all([redis.send(key, ['GET', key]), redis.send(key, ['PEXPIRETIME', key])]),
    reply: storedValue,
    memory: (values, key) => values.get(key),
    tells: 'ifGone',
  },
  readUntracked: {
    send: (redis, _skewMs, key) => runScript(redis, READ, [key], [], true),
    reply: storedValue,
    memory: (values, key) => values.get(key),
    isUntracked: true,
    tells: 'ifGone',
  },
  readMany: {
    known: (keys) => (keys.length === 0 ? { reply: [] } : undefined),
    send: (redis, _skewMs, keys) => redis.readMany(keys),
    reply: (values: readonly (string | null)[]) => values.map((value) => value ?? undefined),
    memory: (values, keys) => keys.map((key) => values.get(key)?.value),
    isUntracked: true,
  },
  replace: {
    send(redis, skewMs, key, expected, value, expiresAt) {
      const until = expiresAt === undefined ? [] : [expiresAt + skewMs(key)]
      return runScript(redis, REPLACE, [key], [asBytes(expected), asBytes(value), ...until])
    },
    reply: isOne,
    memory(values, key, expected, value, expiresAt) {
      const held = values.get(key)
      if (held === undefined || (held.value !== expected && held.value !== value)) return false
      return values.write(key, value, expiresAt ?? held.expiresAt)
    },
    tells: 'always',
  },
  extend: {
    send: (redis, skewMs, key, expiresAt) => runScript(redis, EXTEND, [key], [expiresAt + skewMs(key)]),
    reply: storedValue,
    memory(values, key, expiresAt) {
      const current = values.get(key)
      if (current !== undefined && current.expiresAt < expiresAt) values.write(key, current.value, expiresAt)
      return values.get(key)
    },
    tells: 'ifGone',
    refusal: ([, , refusal = null]: ReadReply) => refusal,
  },
  remove: {
    send: (redis, _skewMs, key) => redis.send(key, ['DEL', key]),
    reply: isOne,
    memory: (values, key) => values.remove(key),
    tells: 'always',
  },
  removeIf: {
    send: (redis, _skewMs, key, expected) => runScript(redis, REMOVE_IF, [key], [asBytes(expected)]),
    reply: isOne,
    memory: (values, key, expected) => values.get(key)?.value === expected && values.remove(key),
    tells: 'always',
  },
  bury: {
    send(redis, skewMs, key, { key: tombstoneKey, leftKey, value, expiresAt }) {
      const [keys, ends]: [BuriedKeys, number] = [[key, tombstoneKey, leftKey], expiresAt + skewMs(key)]
      return runScript(redis, BURY, keys, [value, ends, ENDED_CHANNEL]).catch((error: unknown) => {
        if (replyCode(error) !== 'TRYAGAIN') throw error
        return buryInSteps(redis, keys, value, ends)
      })
    },
    reply: (left: string | null) => left ?? undefined,
    memory(values, key, { key: tombstoneKey, leftKey, value, expiresAt }) {
      const current = values.get(key)
      if (current === undefined) return values.get(leftKey)?.value
      const left = `${value} ${current.value}`
      values.write(tombstoneKey, value, expiresAt)
      values.write(leftKey, left, Date.now() + LEFT_MS)
      values.remove(key)
      return left
    },
    // The script reads the key, which a stranger may have named.
    isUntracked: true,
    tells: 'always',
  },
  count: {
    send: (redis, _skewMs, key, by, ttlMs, isEvenWhenFull = false) =>
      runScript(redis, isEvenWhenFull ? COUNT_EVEN_WHEN_FULL : COUNT, [key], [by, ttlMs]),
    reply: (reply: number) => reply,
    memory(values, key, by, ttlMs) {
      const current = values.get(key)
      const count = Number(current?.value ?? 0) + by
      values.write(key, String(count), current?.expiresAt ?? Date.now() + ttlMs)
      return count
    },
  },
  readMarked: {
    send: (redis, _skewMs, key, mark) => runScript(redis, READ_MARKED, [key], [mark]),
    reply: ([isKnown, value, now]: [isKnown: number, value: string | null, now: number]) => ({
      isKnown: isKnown === 1,
      value: value ?? undefined,
      now,
    }),
    memory(values, key, mark) {
      const value = values.get(key)?.value
      const isKnown = mark !== '' && value?.startsWith(`${mark} `) === true
      return { isKnown, value: isKnown ? undefined : value, now: Date.now() }
    },
    isUntracked: true,
  },
  replaceMarked: {
    send: (redis, _skewMs, key, mark, value, ttlMs, { channel, text }) =>
      runScript(redis, REPLACE_MARKED, [key], [mark, value, ttlMs, channel, text]),
    reply: isOne,
    memory: (values, key, mark, value, ttlMs) =>
      markOf(values.get(key)?.value ?? '') === mark && values.write(key, value, Date.now() + ttlMs),
    isUntracked: true,
  },
}

/** Those of them that replicas can confirm. */
export const CONFIRMABLE: Commands<MemoryValues, ConfirmableWrites> = { create: DATA.create, replace: DATA.replace }
