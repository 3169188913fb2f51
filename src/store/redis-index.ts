import type { RedisCommands } from './redis-link.ts'
import { evenWhenFull, NOW, runScript, type Ask } from './script.ts'
import { ENDED_MS, type EntryState, type IndexEntry, type NewEntry, type SessionIndex } from './session-index.ts'

/*
 * An index is a hash. The value of an entry is `addedAt expiresAt value`, followed by ` ended` once the entry is ended; the
 * field `ended` has the time at which all were ended. No id has that name.
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

/** Notes that some are ended. */
const END = evenWhenFull(`
for _, id in ipairs(ARGV) do
  local entry = redis.call('HGET', KEYS[1], id)
  if entry and not string.find(entry, ' ended', 1, true) then redis.call('HSET', KEYS[1], id, entry .. ' ended') end
end`)

/** Removes some. */
const REMOVE = `return redis.call('HDEL', KEYS[1], unpack(ARGV))`

/** Returns the time, an entry, and when all were ended. */
const LOOK = `${NOW}
return {now, redis.call('HGET', KEYS[1], ARGV[1]), redis.call('HGET', KEYS[1], 'ended')}`

/** A time, and a hash as a flat list of fields and values. */
type ListReply = [now: number, fields: string[]]
type LookReply = [now: number, entry: string | null, endedAt: string | null]

/** {@link SessionIndex} in Redis. */
export class RedisIndex implements SessionIndex {
  readonly #ask: Ask<RedisCommands>

  /** @param ask runs commands whose keys the server does not track */
  constructor(ask: Ask<RedisCommands>) {
    this.#ask = ask
  }

  async add(key: string, { id, value, expiresAt }: NewEntry, after: number): Promise<number> {
    return (await this.#run(ADD, key, [id, value, expiresAt, after])) as number
  }

  async list(key: string): Promise<readonly IndexEntry[]> {
    return entriesOf((await this.#run(LIST, key)) as ListReply)
  }

  async endAll(key: string): Promise<readonly IndexEntry[]> {
    return entriesOf((await this.#run(END_ALL, key)) as ListReply)
  }

  async end(key: string, ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#run(END, key, ids)
  }

  async remove(key: string, ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#run(REMOVE, key, ids)
  }

  async look(key: string, id: string): Promise<EntryState> {
    const [now, entry, endedAt] = (await this.#run(LOOK, key, [id])) as LookReply
    const agoMs = endedAt === null ? Infinity : now - Number(endedAt)
    return {
      isListed: entry !== null && !entry.endsWith(' ended'),
      endedAgoMs: agoMs < ENDED_MS ? agoMs : undefined,
    }
  }

  #run(script: string, key: string, args?: readonly (string | number)[]): Promise<unknown> {
    return this.#ask((redis) => runScript(redis, script, [key], args))
  }
}

function entriesOf([now, fields]: ListReply): readonly IndexEntry[] {
  const entries: IndexEntry[] = []
  for (let at = 0; at < fields.length; at += 2) {
    const [id = '', text = ''] = fields.slice(at, at + 2)
    const [addedAt, expiresAt, value] = text.split(' ')
    if (value !== undefined && Number(expiresAt) > now) {
      entries.push({ id, value, addedAt: Number(addedAt), expiresAt: Number(expiresAt) })
    }
  }
  return entries.toSorted((one, other) => one.addedAt - other.addedAt)
}
