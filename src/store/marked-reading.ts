import type { RedisCommands } from './links/redis-link.ts'
import { NOW, runScript, type Ask } from './scripts.ts'

/** A value that was read with {@link readMarked}, and the store's clock. */
export interface MarkedReading {
  /** Undefined where there is no value, and where it has the mark that the caller knows. */
  readonly value: string | undefined
  /** Whether the value has the mark that the caller knows. */
  readonly isKnown: boolean
  /** The store's clock (epoch ms). */
  readonly now: number
}

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

type Reply = [isKnown: number, value: string | null, now: number]

/** `Store.readMarked` in Redis. @param ask runs commands whose keys the server does not track */
export async function readMarked(ask: Ask<RedisCommands>, key: string, mark: string): Promise<MarkedReading> {
  const reply = await ask((redis) => runScript(redis, READ_MARKED, [key], [mark]))
  const [isKnown, value, now] = reply as Reply
  return { isKnown: isKnown === 1, value: value ?? undefined, now }
}

/** The mark of a text: its first word. */
export function markOf(text: string): string {
  return text.split(' ', 1)[0] ?? ''
}
