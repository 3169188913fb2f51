import { createClient, type RedisClientOptions } from 'redis'
import { MasterLink } from './master-link.ts'
import type { RedisAccess, RedisAddress, RedisNode } from './redis-address.ts'
import {
  backoffMs,
  delay,
  nodeOptions,
  type LinkEvents,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'

/** How often the Sentinels are asked whether the master is still the master, and how long one may take. */
const LOOK_EVERY_MS = 1000
const SENTINEL_TIMEOUT_MS = 1000

/**
 * The link to whichever server the Sentinels call the master (redis.io/docs/reference/sentinel-clients). Not
 * node-redis's createSentinel(): that neither hears of changes nor fails at once, but queues and acts later.
 */
export class SentinelLink implements RedisLink {
  readonly tracks = true
  readonly #name: string
  readonly #access: RedisAccess
  /** The one that answered last comes first. */
  #sentinels: readonly RedisNode[]
  #master: MasterLink | undefined
  #isClosed = false

  constructor({ nodes, access, master }: Extract<RedisAddress, { is: 'sentinel' }>) {
    this.#sentinels = nodes
    this.#access = access
    this.#name = master
  }

  open(events: LinkEvents): Promise<void> {
    return new Promise((connected) => void this.#run(events, connected))
  }

  commands(): RedisCommands {
    if (this.#master === undefined) throw new Error('there is no master')
    return this.#master.commands()
  }

  async isReplicated(key: string): Promise<boolean | undefined> {
    return this.#master === undefined ? false : this.#master.isReplicated(key)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#master?.close()
  }

  async #run(events: LinkEvents, connected: () => void): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      const node = await this.#findMaster()
      if (node === undefined) events.lost('no Sentinel names a master')
      else if (await this.#stayWith(node, events, connected)) tries = 0
      if (!this.#isClosed) await delay(backoffMs(tries))
    }
    connected()
  }

  /** Serves from this master until it is lost, or no longer the master. True when it ever served. */
  async #stayWith(node: RedisNode, events: LinkEvents, connected: () => void): Promise<boolean> {
    const master = new MasterLink(nodeOptions(node, this.#access), { reconnects: false })
    const lost = Promise.withResolvers<void>()
    const stage = { is: 'connecting' as 'connecting' | 'serving' | 'over' }
    const end = (reason: string): void => {
      if (stage.is === 'over') return
      stage.is = 'over'
      events.lost(reason)
      lost.resolve()
    }
    await master.open({
      up: () => undefined,
      answered: () => stage.is === 'serving' && events.answered(),
      changed: (key) => events.changed(key),
      lost: end,
    })
    try {
      // Checked, since a Sentinel may be behind, and name one that was demoted.
      if (this.#isOver(stage) || !(await master.isMaster()) || this.#isOver(stage)) return false
      this.#master = master
      stage.is = 'serving'
      events.up()
      connected()
      while (!this.#isOver(stage)) {
        await Promise.race([delay(LOOK_EVERY_MS), lost.promise])
        const named = this.#isOver(stage) ? undefined : await this.#findMaster()
        if (named !== undefined && !isSame(named, node)) return true
      }
      return true
    } catch {
      return false
    } finally {
      end('the master was replaced')
      if (!this.#isClosed || this.#master !== master) master.drop()
      this.#master = undefined
    }
  }

  #isOver({ is }: { is: 'connecting' | 'serving' | 'over' }): boolean {
    return this.#isClosed || is === 'over'
  }

  async #findMaster(): Promise<RedisNode | undefined> {
    for (const sentinel of this.#sentinels) {
      const master = await this.#ask(sentinel)
      if (master === undefined) continue
      this.#sentinels = [sentinel, ...this.#sentinels.filter((other) => other !== sentinel)]
      return master
    }
    return undefined
  }

  async #ask(sentinel: RedisNode): Promise<RedisNode | undefined> {
    const { tls, password } = this.#access
    const master = await this.#askAs(sentinel, this.#access)
    // Many Sentinels have no password although their servers do, and refuse one.
    return master ?? (password === undefined ? undefined : this.#askAs(sentinel, { tls }))
  }

  async #askAs(sentinel: RedisNode, access: RedisAccess): Promise<RedisNode | undefined> {
    const options = nodeOptions(sentinel, access)
    const socket = { ...options.socket, connectTimeout: SENTINEL_TIMEOUT_MS, reconnectStrategy: false }
    const client = createClient({ ...options, socket } as RedisClientOptions)
    client.on('error', () => undefined)
    const question = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#name]
    const answer = client.connect().then(() => client.sendCommand(question))
    try {
      const [host, port] = (await Promise.race([answer, delay(SENTINEL_TIMEOUT_MS)])) as unknown as [
        unknown,
        unknown,
      ]
      return { host: String(host), port: Number(port) }
    } catch {
      return undefined
    } finally {
      if (client.isOpen) client.destroy()
    }
  }
}

function isSame(one: RedisNode, other: RedisNode): boolean {
  return one.host === other.host && one.port === other.port
}
