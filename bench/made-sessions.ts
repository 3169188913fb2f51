import { randomBytes } from 'node:crypto'
import { Changeable } from '../src/config/changing.ts'
import { RedisStore } from '../src/store/redis-store.ts'
import { instanceOn, newSession, sessionRecord } from '../test/support/sessions/session-instance.ts'
import { atEnd } from './program.ts'
import type { World } from './world.ts'

const CREATED_AT_ONCE = 500

/**
 * Creates sessions in Redis by the code that a login uses, for a server whose SESSION_SECRETS are those of the tests.
 * @returns their Cookie headers
 */
export async function makeSessions({ redis }: World, count: number): Promise<string[]> {
  const store = RedisStore.connect(new Changeable(redis.url), {
    error: () => undefined,
    warn: () => undefined,
    info: () => undefined,
  })
  atEnd(async () => store.close())
  await store.connected(5000)
  const instance = instanceOn(store, 1_800_000)
  const make = async (): Promise<string> => {
    const accessToken = randomBytes(32).toString('base64url')
    return instance.cookie(await newSession(instance, { ...sessionRecord(), accessToken }))
  }
  const cookies: string[] = []
  while (cookies.length < count) {
    const batch = Math.min(CREATED_AT_ONCE, count - cookies.length)
    cookies.push(...(await Promise.all(Array.from({ length: batch }, make))))
  }
  return cookies
}
