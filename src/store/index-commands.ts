import { LRUCache } from 'lru-cache'
import type { Commands } from './command.ts'
import { evenWhenFull, NOW, runScript } from './scripts.ts'
import { ENDED_MS, type IndexEntry, type IssueMark, type SessionIndex } from './session-index.ts'

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

/** What an index has of a key, in memory. */
interface Indexed {
  readonly entries: Map<string, IndexEntry>
  readonly ended: Set<string>
  /** When all were ended (epoch ms). */
  endedAt: number
  readonly endedUntil: Record<IssueMark, number>
}

/** Finds what the index has of a key. */
type MemoryIndexes = (key: string) => Indexed

/** More keys than one development process ever has; the oldest are evicted first. */
const MAX_KEYS = 10_000

/** An empty index in the memory of this process. */
export function memoryIndexes(): MemoryIndexes {
  const byKey = new LRUCache<string, Indexed>({ max: MAX_KEYS })
  return (key) => {
    const endedUntil = { issued: -Infinity, sidless: -Infinity }
    const indexed = byKey.get(key) ?? { entries: new Map(), ended: new Set(), endedAt: -Infinity, endedUntil }
    byKey.set(key, indexed)
    return indexed
  }
}

/** {@link SessionIndex} as commands. The server tracks none of their keys. */
export const INDEX: Commands<MemoryIndexes, SessionIndex> = {
  add: {
    send: (redis, skewMs, key, { id, value, expiresAt }, after) =>
      runScript(redis, ADD, [key], [id, value, expiresAt + skewMs(key), after]),
    reply: (count: number) => count,
    memory(indexes, key, entry, after) {
      const { entries } = indexes(key)
      const now = Date.now()
      const expired = [...entries.values()].filter(({ expiresAt }) => expiresAt <= now)
      forget(
        indexes(key),
        expired.map(({ id }) => id),
      )
      const newest = Math.max(after, ...[...entries.values()].map(({ addedAt }) => addedAt))
      entries.set(entry.id, { ...entry, addedAt: Math.max(now, newest + 1) })
      return entries.size
    },
    isUntracked: true,
  },
  list: {
    send: (redis, _skewMs, key) => runScript(redis, LIST, [key]),
    reply: entriesOf,
    memory: (indexes, key) => listed(indexes(key)),
    isUntracked: true,
  },
  endAll: {
    send: (redis, _skewMs, key) => runScript(redis, END_ALL, [key]),
    reply: entriesOf,
    memory(indexes, key) {
      indexes(key).endedAt = Date.now()
      return listed(indexes(key))
    },
    isUntracked: true,
  },
  endIssued: {
    send: (redis, _skewMs, key, mark, until) => runScript(redis, END_ISSUED, [key], [mark, until]),
    reply: entriesOf,
    memory(indexes, key, mark, until) {
      const { endedUntil } = indexes(key)
      endedUntil[mark] = Math.max(endedUntil[mark], until)
      return listed(indexes(key))
    },
    isUntracked: true,
  },
  end: {
    known: unlessAny,
    send: (redis, _skewMs, key, ids) => runScript(redis, END, [key], ids),
    reply: () => undefined,
    memory(indexes, key, ids) {
      const { entries, ended } = indexes(key)
      for (const id of ids) if (entries.has(id)) ended.add(id)
    },
    isUntracked: true,
  },
  remove: {
    known: unlessAny,
    send: (redis, _skewMs, key, ids) => runScript(redis, REMOVE, [key], ids),
    reply: () => undefined,
    memory: (indexes, key, ids) => forget(indexes(key), ids),
    isUntracked: true,
  },
  look: {
    send: (redis, _skewMs, key, id) => runScript(redis, LOOK, [key], [id]),
    reply([now, entry, endedAt, issued, sidless]: LookReply) {
      const isListed = entry !== null && !entry.endsWith(' ended')
      const endedUntil = { issued: Number(issued ?? -Infinity), sidless: Number(sidless ?? -Infinity) }
      return { isListed, endedAgoMs: recent(now - Number(endedAt ?? -Infinity)), endedUntil }
    },
    memory(indexes, key, id) {
      const { entries, ended, endedAt, endedUntil } = indexes(key)
      const isListed = entries.has(id) && !ended.has(id)
      return { isListed, endedAgoMs: recent(Date.now() - endedAt), endedUntil: { ...endedUntil } }
    },
    isUntracked: true,
  },
}

/** There is nothing to do for no ids. */
function unlessAny(_key: string, ids: readonly string[]): { readonly reply: undefined } | undefined {
  return ids.length === 0 ? { reply: undefined } : undefined
}

/** Undefined for what is no longer remembered. */
function recent(agoMs: number): number | undefined {
  return agoMs < ENDED_MS ? agoMs : undefined
}

function forget({ entries, ended }: Indexed, ids: readonly string[]): void {
  for (const id of ids) {
    entries.delete(id)
    ended.delete(id)
  }
}

function listed({ entries }: Indexed): IndexEntry[] {
  const now = Date.now()
  return [...entries.values()].filter(({ expiresAt }) => expiresAt > now)
}

function entriesOf([now, fields]: ListReply, skewMs: (key: string) => number, key: string): readonly IndexEntry[] {
  const entries: IndexEntry[] = []
  const aheadMs = skewMs(key)
  for (let at = 0; at < fields.length; at += 2) {
    const [id = '', text = ''] = fields.slice(at, at + 2)
    const [addedAt, expiresAt, value] = text.split(' ')
    if (value !== undefined && Number(expiresAt) > now) {
      entries.push({ id, value, addedAt: Number(addedAt), expiresAt: Number(expiresAt) - aheadMs })
    }
  }
  return entries.toSorted((one, other) => one.addedAt - other.addedAt)
}
