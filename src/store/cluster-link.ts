import { createCluster } from 'redis'
import type { RedisAccess, RedisAddress } from './redis-address.ts'
import {
  backoffMs,
  CONNECTION,
  delay,
  nodeOptions,
  SOCKET,
  type LinkEvents,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'
import { ReplicaCheck } from './replica-check.ts'

const PING_EVERY_MS = 1000
const SLOTS = 16_384

function cluster({ nodes, access }: Extract<RedisAddress, { is: 'cluster' }>) {
  const { socket: _, ...rest } = nodeOptions({ host: '', port: 0 }, access)
  const tls = access.tls ? { tls: true } : {}
  return createCluster({
    rootNodes: nodes.map((node) => nodeOptions(node, access)),
    defaults: {
      ...rest,
      ...CONNECTION,
      socket: { ...tls, ...SOCKET, reconnectStrategy: backoffMs },
    },
    // A master that is gone has a successor within seconds: look for it as soon as it is missed.
    topologyRefreshOnReconnectionAttemptStrategy: 500,
  })
}

/** The link to a Redis Cluster. node-redis does not pass on what its servers say of changes, so nothing is heard. */
export class ClusterLink implements RedisLink {
  readonly tracks = false
  readonly #cluster: ReturnType<typeof cluster>
  readonly #access: RedisAccess
  /** By the address of a master. */
  readonly #replicas = new Map<string, ReplicaCheck>()
  #pings: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(address: Extract<RedisAddress, { is: 'cluster' }>) {
    this.#access = address.access
    this.#cluster = cluster(address)
    // A node that fails is heard of by whoever asks it.
    this.#cluster.on('error', () => undefined)
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
    const pings = this.#cluster.masters.map(async (node) => (await this.#cluster.nodeClient(node)).ping())
    await Promise.any(pings).then(
      () => events.answered(),
      () => undefined,
    )
  }
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
