import { askSentinel } from './ask-sentinel.ts'
import type { MasterFinder, MasterServer } from './master-link.ts'
import type { RedisAccess, RedisAddress, RedisNode } from '../config/redis-address.ts'
import { nodeOptions } from './redis-link.ts'

/** Asks the Sentinels where the master is (redis.io/docs/reference/sentinel-clients). */
export class Sentinels implements MasterFinder {
  readonly #name: string
  readonly #access: RedisAccess
  /** The one that answered last comes first. */
  #sentinels: readonly RedisNode[]

  constructor({ nodes, access, master }: Extract<RedisAddress, { is: 'sentinel' }>) {
    this.#sentinels = nodes
    this.#access = access
    this.#name = master
  }

  async find(): Promise<MasterServer | undefined> {
    for (const sentinel of this.#sentinels) {
      const master = await askSentinel(sentinel, this.#access, this.#name)
      if (master === undefined) continue
      this.#sentinels = [sentinel, ...this.#sentinels.filter((other) => other !== sentinel)]
      return { name: `${master.host}:${master.port}`, options: nodeOptions(master, this.#access) }
    }
    return undefined
  }
}
