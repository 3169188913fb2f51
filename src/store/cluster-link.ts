import { RedisCluster, type RedisClientOptions } from '@redis/client'
import type { RedisNode } from '../config/redis-address.ts'
import { closedForGood, CONNECTION, SOCKET } from './connection.ts'
import { beforeDeadline } from './deadline.ts'
import type { LiveCredentials } from './live-credentials.ts'
import {
  reconnectMs,
  delay,
  liveNodeOptions,
  type LinkEvents,
  type MasterCommands,
  type MasterServer,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'
import { ClusterProbes, slotOf } from './cluster-probes.ts'
import { ReplicaCheck } from './replica-check.ts'

const PING_INTERVAL_MS = 1000
/** A connection that is silent for this long is reopened. The event loop may be blocked for nearly as long. */
const MAX_SILENCE_MS = 4000
/** After this many consecutive rounds of pings with a reply missing, the link tries a new client. */
const MAX_MISSED = 2
/** Timeout for a new client to reach every master. */
const RENEW_MS = 5000

type Client = ReturnType<typeof createClient>

function createClient(nodes: readonly RedisNode[], credentials: LiveCredentials) {
  const { tls } = credentials.access
  const client = RedisCluster.create({
    rootNodes: nodes.map((node) => liveNodeOptions(node, credentials)),
    defaults: {
      credentialsProvider: credentials,
      ...CONNECTION,
      socket: { ...(tls && { tls }), ...SOCKET, socketTimeout: MAX_SILENCE_MS, reconnectStrategy: reconnectMs },
    },
    // A lost master has a successor within seconds, so the client looks for it as soon as the connection fails.
    topologyRefreshOnReconnectionAttemptStrategy: 500,
  })
  for (const event of ['node-connect', 'node-ready', 'node-error', 'node-reconnecting']) {
    client.on(event, () => {
      guardConnections(client)
      // The library goes on with a search for the masters after it was closed, and would keep what it connects then.
      if (!client.isOpen) client.destroy()
    })
  }
  // The commands that a failed node was sent reject, so the event adds nothing.
  return client.on('error', () => undefined)
}

/** The connections that are guarded already. */
const guarded = new WeakSet<object>()

function guardConnections(client: Pick<Client, 'nodeByAddress'>): void {
  for (const { client: connection } of client.nodeByAddress.values()) {
    if (connection === undefined || guarded.has(connection)) continue
    guarded.add(connection)
    closedForGood(connection)
  }
}

function destroy(client: Client): void {
  guardConnections(client)
  client.destroy()
}

/** The link to a Redis Cluster. It cannot track keys, because node-redis drops the invalidations of a Cluster. */
export class ClusterLink implements RedisLink {
  readonly tracks = false
  readonly #nodes: readonly RedisNode[]
  readonly #credentials: LiveCredentials
  #client: Client
  /** By the address of a master. */
  readonly #replicas = new Map<string, ReplicaCheck>()
  readonly #endFollowing: () => void
  #pings: NodeJS.Timeout | undefined
  readonly #probes = new ClusterProbes()
  #missed = 0
  #isRenewing = false
  #isClosed = false

  constructor(nodes: readonly RedisNode[], credentials: LiveCredentials) {
    this.#nodes = nodes
    this.#credentials = credentials
    this.#client = createClient(nodes, credentials)
    this.#endFollowing = credentials.onChange(() => this.#authenticate())
  }

  async open(events: LinkEvents): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      try {
        await this.#client.connect()
        break
      } catch {
        await delay(reconnectMs(tries))
      }
    }
    if (this.#isClosed) return
    // Whether any master serves is known before the store is up.
    await this.#pingAll(events)
    if (this.#isClosed) return
    events.up()
    this.#pings = setInterval(() => void this.#pingAll(events), PING_INTERVAL_MS)
    this.#pings.unref()
  }

  commands(): RedisCommands {
    return this.#client
  }

  untracked(): RedisCommands {
    return this.#client
  }

  async readMany(keys: readonly string[]): Promise<(string | null)[]> {
    // MGET fails here, because the keys live on different nodes.
    return Promise.all(keys.map((key) => this.#client.get(key)))
  }

  askMasters<Reply>(question: (master: MasterCommands) => Promise<Reply>): Promise<Reply[]> {
    const client = this.#client
    return Promise.all(client.masters.map(async (node) => question(await client.nodeClient(node))))
  }

  masterOf(key: string): MasterServer {
    const { host, port, address } = this.#client.slots[slotOf(key)]?.master ?? {}
    if (host === undefined || port === undefined || address === undefined) throw new Error('no master has the slot')
    return { name: address, options: liveNodeOptions({ host, port }, this.#credentials) }
  }

  masterNames(): ReadonlySet<string> {
    return new Set(this.#client.masters.map(({ address }) => address))
  }

  anyServer(): RedisClientOptions | undefined {
    const { masters } = this.#client
    const node = masters[Math.floor(Math.random() * masters.length)]
    return node && liveNodeOptions(node, this.#credentials)
  }

  abandon(): void {
    // node-redis follows the redirections of a Cluster by itself, and drops silent masters.
  }

  async isReplicated(key: string): Promise<boolean | undefined> {
    const { name, options } = this.masterOf(key)
    const check = this.#replicas.get(name) ?? new ReplicaCheck(options)
    this.#replicas.set(name, check)
    return check.ask(key)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#endFollowing()
    clearInterval(this.#pings)
    for (const check of this.#replicas.values()) check.close()
    if (this.#client.isOpen) destroy(this.#client)
  }

  /** The store is available while any master is: a lost master takes only its own keys with it. */
  async #pingAll(events: LinkEvents): Promise<void> {
    const client = this.#client
    this.#dropReplicasExceptOf(this.masterNames())
    const pings = client.masters.map((node) => this.#probes.ask(client, node, events))
    void Promise.any(pings).then(
      () => events.alive(),
      () => undefined,
    )
    const results = await Promise.allSettled(pings)
    this.#missed = results.every(({ status }) => status === 'fulfilled') ? 0 : this.#missed + 1
    if (this.#missed >= MAX_MISSED) await this.#renew()
  }

  /** The connections of the cluster's client, which node-redis makes. */
  #authenticate(): void {
    const client = this.#client
    for (const node of client.masters) {
      const connection = Promise.resolve(client.nodeClient(node))
      connection.then((open) => this.#credentials.authenticate(open)).catch(() => undefined)
    }
  }

  #dropReplicasExceptOf(masters: ReadonlySet<string>): void {
    for (const [address, check] of this.#replicas) {
      if (masters.has(address)) continue
      check.close()
      this.#replicas.delete(address)
    }
  }

  /**
   * node-redis waits for ever for a master that accepts connections but hangs, and learns of no successor meanwhile.
   * So the link tries a new client. The old one serves what it can until the new one has reached every current master.
   */
  async #renew(): Promise<void> {
    if (this.#isRenewing || this.#isClosed) return
    this.#isRenewing = true
    const next = createClient(this.#nodes, this.#credentials)
    try {
      await beforeDeadline(RENEW_MS, next.connect())
      if (this.#isClosed) return destroy(next)
      destroy(this.#client)
      this.#client = next
      this.#missed = 0
    } catch {
      if (next.isOpen) destroy(next)
    } finally {
      this.#isRenewing = false
    }
  }
}
