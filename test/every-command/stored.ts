import type { Test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { SESSION_KEYS } from '../../src/store/keys.ts'
import { storeClient } from '../support/redis/store-client.ts'

/** What the masters have. */
export interface Stored {
  /** The sessions, and the port of the master of each. */
  readonly sessions: () => Promise<[key: string, port: number][]>
  /** The locks under which tokens are renewed. */
  readonly locks: () => Promise<string[]>
  readonly immortalKeys: () => Promise<string[]>
}

/** Looks into all of them. */
export async function storedIn(t: Test, masters: readonly RedisProcess[]): Promise<Stored> {
  const clients = await Promise.all(masters.map(async (redis) => ({ ...redis, is: await storeClient(t, { redis }) })))
  const flat = async <Item>(ask: (client: (typeof clients)[number]) => Promise<Item[]>): Promise<Item[]> =>
    (await Promise.all(clients.map(ask))).flat()
  return {
    sessions: () =>
      flat(async ({ is, port }) => {
        const keys = await is.keys(`${SESSION_KEYS.prefix}*`)
        return keys.filter(({ length }) => length === SESSION_KEYS.length).map((key): [string, number] => [key, port])
      }),
    locks: () => flat(({ is }) => is.keys('*:refresh')),
    immortalKeys: () =>
      flat(async ({ is }) => {
        const keys = await is.keys('*')
        const lifetimes = await Promise.all(keys.map((key) => is.pTTL(key)))
        return keys.filter((_key, at) => lifetimes[at] === -1)
      }),
  }
}
