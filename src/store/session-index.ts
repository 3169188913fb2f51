import type { RedisCommands } from './links/redis-link.ts'
import { evenWhenFull, NOW, runScript, type Ask } from './scripts.ts'

/** An entry of an index, as its owner adds it. */
export interface NewEntry {
  /** Unique within its key: 1 to 32 characters of `A-Za-z0-9_-`. */
  readonly id: string
  /** Any text without a space. */
  readonly value: string
  /** When the store forgets the entry (epoch ms). */
  readonly expiresAt: number
}

/** An entry of an index, as the store has it. */
export interface IndexEntry extends NewEntry {
  /** Grows with every entry of a key. The store's time (epoch ms), or a little more so that the entry is the newest. */
  readonly addedAt: number
}

/** What has become of an entry. */
export interface EntryState {
  /** The entry is there, and {@link SessionIndex.end} has not named it. */
  readonly isListed: boolean
  /** How long ago {@link SessionIndex.endAll} was called for the key (ms); undefined if not within {@link ENDED_MS}. */
  readonly endedAgoMs: number | undefined
  /** The latest time that {@link SessionIndex.endIssued} was called with, by mark; -Infinity without a call. */
  readonly endedUntil: Readonly<Record<IssueMark, number>>
}

/** Which entries {@link SessionIndex.endIssued} concerns: all, or only those of sessions that know no `sid`. */
export type IssueMark = 'issued' | 'sidless'

/**
 * Entries by key, such as the sessions of a subject. The operations are atomic for a key, measure time by the store's clock,
 * and reject with StoreUnavailable while it is unavailable. Those that end or remove succeed even when the store is full.
 */
export interface SessionIndex {
  /**
   * Adds an entry. Returns the number of entries that have not expired, the new one included.
   * @param after an {@link IndexEntry.addedAt} of another key, after which the entry is to come; 0 for none
   */
  add(key: string, entry: NewEntry, after: number): Promise<number>
  /** The entries that have not expired, the oldest first. */
  list(key: string): Promise<readonly IndexEntry[]>
  /** Notes for {@link ENDED_MS} that all entries so far are ended, and returns them. It removes none. */
  endAll(key: string): Promise<readonly IndexEntry[]>
  /**
   * Notes that the entries of sessions are ended whose ID token was issued until a time, and returns all. It removes none. The
   * note lasts for {@link ENDED_MS} at least. One of an earlier time does not replace one of a later.
   * @param until epoch s by the clock of the provider
   */
  endIssued(key: string, mark: IssueMark, until: number): Promise<readonly IndexEntry[]>
  /** Notes that these entries are ended. It removes none. */
  end(key: string, ids: readonly string[]): Promise<void>
  remove(key: string, ids: readonly string[]): Promise<void>
  look(key: string, id: string): Promise<EntryState>
}

/** How long the store remembers the last {@link SessionIndex.endAll} of a key. */
export const ENDED_MS = 600_000

/*
 * An index is a hash. The value of an entry is `addedAt expiresAt value`, followed by ` ended` once the entry is ended; the
 * field `ended` has the time at which all were ended, and those of each `IssueMark` until when the ID tokens were issued of
 * the sessions that were. No id has such a name.
 */

/** Lets the key live at least until a time. */
const LIVE_UNTIL = `
local function live(ends)
  if redis.call('PEXPIRETIME', KEYS[1]) < ends then redis.call('PEXPIREAT', KEYS[1], ends) end
end`

/** Removes what has expired, adds an entry as the newest, and returns the number of entries. */
const ADD = `${NOW}${LIVE_UNTIL}
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
const LIST = `${NOW}
return {now, redis.call('HGETALL', KEYS[1])}`

/** Notes that all are ended, and returns the time and the whole hash. */
const END_ALL = evenWhenFull(`${NOW}${LIVE_UNTIL}
redis.call('HSET', KEYS[1], 'ended', now)
live(now + ${ENDED_MS})
return {now, redis.call('HGETALL', KEYS[1])}`)

/** Notes until when those were issued that are ended, and returns the time and the whole hash. */
const END_ISSUED = evenWhenFull(`${NOW}${LIVE_UNTIL}
local before = redis.call('HGET', KEYS[1], ARGV[1])
if not before or tonumber(before) < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
live(now + ${ENDED_MS})
return {now, redis.call('HGETALL', KEYS[1])}`)

/** Notes that some are ended. */
const END = evenWhenFull(`
for _, id in ipairs(ARGV) do
  local entry = redis.call('HGET', KEYS[1], id)
  if entry and not string.find(entry, ' ended', 1, true) then redis.call('HSET', KEYS[1], id, entry .. ' ended') end
end`)

/** Removes some. */
const REMOVE = `
for _, id in ipairs(ARGV) do redis.call('HDEL', KEYS[1], id) end`

/** Returns the time, an entry, when all were ended, and until when those were issued that are ended. */
const LOOK = `${NOW}
local function field(name) return redis.call('HGET', KEYS[1], name) end
return {now, field(ARGV[1]), field('ended'), field('issued'), field('sidless')}`

/** A time, and a hash as a flat list of fields and values. */
type ListReply = [now: number, fields: string[]]
type LookReply = [now: number, entry: Field, endedAt: Field, issued: Field, sidless: Field]
type Field = string | null

/**
 * {@link SessionIndex} in Redis.
 * @param ask runs commands whose keys the server does not track
 * @param skewMs how far the clock of the server that holds a key is ahead of the store's
 */
export function redisIndex(ask: Ask<RedisCommands>, skewMs: (key: string) => number): SessionIndex {
  const run = (script: string, key: string, args?: readonly (string | number)[]): Promise<unknown> =>
    ask((redis) => runScript(redis, script, [key], args))
  return {
    async add(key, { id, value, expiresAt }, after) {
      return (await run(ADD, key, [id, value, expiresAt + skewMs(key), after])) as number
    },
    async list(key) {
      return entriesOf((await run(LIST, key)) as ListReply, skewMs(key))
    },
    async endAll(key) {
      return entriesOf((await run(END_ALL, key)) as ListReply, skewMs(key))
    },
    async endIssued(key, mark, until) {
      return entriesOf((await run(END_ISSUED, key, [mark, until])) as ListReply, skewMs(key))
    },
    async end(key, ids) {
      if (ids.length > 0) await run(END, key, ids)
    },
    async remove(key, ids) {
      if (ids.length > 0) await run(REMOVE, key, ids)
    },
    async look(key, id) {
      const [now, entry, endedAt, issued, sidless] = (await run(LOOK, key, [id])) as LookReply
      const agoMs = endedAt === null ? Infinity : now - Number(endedAt)
      return {
        isListed: entry !== null && !entry.endsWith(' ended'),
        endedAgoMs: agoMs < ENDED_MS ? agoMs : undefined,
        endedUntil: { issued: Number(issued ?? -Infinity), sidless: Number(sidless ?? -Infinity) },
      }
    },
  }
}

function entriesOf([now, fields]: ListReply, skewMs: number): readonly IndexEntry[] {
  const entries: IndexEntry[] = []
  for (let at = 0; at < fields.length; at += 2) {
    const [id = '', text = ''] = fields.slice(at, at + 2)
    const [addedAt, expiresAt, value] = text.split(' ')
    if (value !== undefined && Number(expiresAt) > now) {
      entries.push({ id, value, addedAt: Number(addedAt), expiresAt: Number(expiresAt) - skewMs })
    }
  }
  return entries.toSorted((one, other) => one.addedAt - other.addedAt)
}
