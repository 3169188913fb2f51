import { SESSION_KEYS } from '../../../src/store/keys.ts'

/** The keys of the sessions in Redis. Permits and counters of a session have its key in theirs, and are left out. */
export async function storedSessions(redis: { keys(pattern: string): Promise<string[]> }): Promise<string[]> {
  const keys = await redis.keys(`${SESSION_KEYS.prefix}*`)
  return keys.filter(({ length }) => length === SESSION_KEYS.length)
}
