import { RedisCluster } from 'redis'
import type { RedisAccess, RedisAddress } from '../config/redis-address.ts'
import {
  backoffMs,
  CONNECTION,
  delay,
  nodeOptions,
  SOCKET,
  within,
  type LinkEvents,
  type MasterCommands,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'
import { ReplicaCheck } from './replica-check.ts'

const PING_EVERY_MS = 1000
/** A connection that says nothing for so long is opened anew; this process may have been held up for nearly as long. */
const SILENT_MS = 4000
/** A master that left so many pings unanswered is looked for with a new client. */
const MAX_MISSED = 2
/** The longest that a new client may take to reach all masters. */
const RENEW_MS = 5000
const SLOTS = 16_384

function cluster({ nodes, access }: Extract<RedisAddress, { is: 'cluster' }>) {
  const { socket: _, ...rest } = nodeOptions({ host: '', port: 0 }, access)
  const tls = access.tls ? { tls: true } : {}
  const client = RedisCluster.create({
    rootNodes: nodes.map((node) => nodeOptions(node, access)),
    defaults: {
      ...rest,
      ...CONNECTION,
      socket: { ...tls, ...SOCKET, socketTimeout: SILENT_MS, reconnectStrategy: backoffMs },
    },
    // A master that is gone has a successor within seconds: look for it as soon as it is missed.
    topologyRefreshOnReconnectionAttemptStrategy: 500,
  })
  // A node that fails is heard of by whoever asks it.
  return client.on('error', () => undefined)
}

/** The link to a Redis Cluster. node-redis does not pass on what its servers say of changes, so nothing is heard. */
export class ClusterLink implements RedisLink {
  readonly tracks = false
  readonly #address: Extract<RedisAddress, { is: 'cluster' }>
  readonly #access: RedisAccess
  #cluster: ReturnType<typeof cluster>
  /** By the address of a master. */
  readonly #replicas = new Map<string, ReplicaCheck>()
  #pings: NodeJS.Timeout | undefined
  #missed = 0
  #isRenewing = false
  #isClosed = false

  constructor(address: Extract<RedisAddress, { is: 'cluster' }>) {
    this.#address = address
    this.#access = address.access
    this.#cluster = cluster(address)
  }

  async open(events: LinkEvents): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      try {
        await this.#cluster.connect()
        break
      } catch {
        await delay(backoffMs(tries))
      }
    }
    if (this.#isClosed) return
    events.up()
    this.#pings = setInterval(() => void this.#ping(events), PING_EVERY_MS)
    this.#pings.unref()
  }

  commands(): RedisCommands {
    return this.#cluster
  }

  untracked(): RedisCommands {
    return this.#cluster
  }

  async readMany(keys: readonly string[]): Promise<(string | null)[]> {
    // Not MGET: the keys live on different nodes.
    return Promise.all(keys.map((key) => this.#cluster.get(key)))
  }

  askMasters<Reply>(question: (master: MasterCommands) => Promise<Reply>): Promise<Reply[]> {
    const client = this.#cluster
    return Promise.all(client.masters.map(async (node) => question(await client.nodeClient(node))))
  }

  abandon(): void {
    // node-redis follows the redirections of a Cluster by itself, and leaves silent masters.
  }

  async isReplicated(key: string): Promise<boolean | undefined> {
    const { host, port, address } = this.#cluster.slots[slotOf(key)]?.master ?? {}
    if (host === undefined || port === undefined || address === undefined) return false
    const check = this.#replicas.get(address) ?? new ReplicaCheck(nodeOptions({ host, port }, this.#access))
    this.#replicas.set(address, check)
    return check.ask(key)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#pings)
    for (const check of this.#replicas.values()) check.close()
    if (this.#cluster.isOpen) this.#cluster.destroy()
  }

  /** The store is there while any master is: one that is missed takes its own keys with it, and no others. */
  async #ping(events: LinkEvents): Promise<void> {
    const client = this.#cluster
    this.#forgetReplicas(new Set(client.masters.map(({ address }) => address)))
    const pings = client.masters.map((node) => within(PING_EVERY_MS, ping(client, node)))
    void Promise.any(pings).then(
      () => events.alive(),
      () => undefined,
    )
    const answers = await Promise.allSettled(pings)
    this.#missed = answers.every(({ status }) => status === 'fulfilled') ? 0 : this.#missed + 1
    if (this.#missed >= MAX_MISSED) await this.#renew()
  }

  /** Of masters that are none any more. */
  #forgetReplicas(masters: ReadonlySet<string>): void {
    for (const [address, check] of this.#replicas) {
      if (masters.has(address)) continue
      check.close()
      this.#replicas.delete(address)
    }
  }

  /**
   * node-redis waits for ever for a master that takes connections but hangs, and learns of no successor meanwhile. So
   * a new client is tried; the old one serves what it can until that has reached every master there is by then.
   */
  async #renew(): Promise<void> {
    if (this.#isRenewing || this.#isClosed) return
    this.#isRenewing = true
    const next = cluster(this.#address)
    try {
      await within(RENEW_MS, next.connect())
      if (this.#isClosed) return next.destroy()
      this.#cluster.destroy()
      this.#cluster = next
      this.#missed = 0
    } catch {
      if (next.isOpen) next.destroy()
    } finally {
      this.#isRenewing = false
    }
  }
}

async function ping(client: ReturnType<typeof cluster>, node: ReturnType<typeof cluster>['masters'][number]) {
  return (await client.nodeClient(node)).ping()
}

/** CRC16 (XMODEM) of the key (redis.io/docs/reference/cluster-spec: keys distribution model). Ours hold no braces. */
function slotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(key)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc % SLOTS
}
