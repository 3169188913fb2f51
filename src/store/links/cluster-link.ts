import type { RedisNode } from '../../config/redis-address.ts'
import { polls } from '../../time/polls.ts'
import { ClusterCommands } from './cluster-commands.ts'
import { ClusterNodes } from './cluster-nodes.ts'
import { ClusterProbes } from './cluster-probes.ts'
import type { LiveCredentials } from './live-credentials.ts'
import {
  delay,
  reconnectMs,
  type LinkEvents,
  type MasterCommands,
  type MasterServer,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'
import { ReplicaCheck } from './replica-check.ts'

const PROBE_INTERVAL_MS = 1000
/** How often the link asks who owns which slots. */
const SLOTS_INTERVAL_MS = 5000

/**
 * The link to a Redis Cluster: a connection to each master. It cannot track keys, since those of a session may move to another
 * master, which knows nothing of who read them before.
 */
export class ClusterLink implements RedisLink {
  readonly tracks = false
  readonly #nodes: ClusterNodes
  readonly #commands: ClusterCommands
  /** By the address of a master. */
  readonly #replicas = new Map<string, ReplicaCheck>()
  #timer: NodeJS.Timeout | undefined
  #endReads: () => void = () => undefined
  #probe: () => void = () => undefined
  readonly #probes = new ClusterProbes()
  #isClosed = false

  constructor(seeds: readonly RedisNode[], credentials: LiveCredentials) {
    this.#nodes = new ClusterNodes(seeds, credentials)
    this.#commands = new ClusterCommands(this.#nodes)
  }

  async open(events: LinkEvents): Promise<void> {
    for (let tries = 0; !this.#isClosed && !(await this.#nodes.read()); tries++) {
      events.lost('no node of the Cluster names its masters')
      await delay(reconnectMs(tries))
    }
    if (this.#isClosed) return
    // Whether any master serves is known before the store is up.
    await this.#probeAll(events)
    if (this.#isClosed) return
    events.up()
    // Not polls(): a master that hangs must not delay the probes of the others.
    this.#probe = () => void this.#probeAll(events)
    this.#timer = setInterval(this.#probe, PROBE_INTERVAL_MS).unref()
    this.#endReads = polls(async () => void (await this.#nodes.read()), SLOTS_INTERVAL_MS)
  }

  commands(): RedisCommands {
    return this.#commands
  }

  untracked(): RedisCommands {
    return this.#commands
  }

  async readMany(keys: readonly string[]): Promise<(string | null)[]> {
    // MGET fails here, because the keys live on different nodes.
    return Promise.all(keys.map((key) => this.#commands.get(key)))
  }

  askMasters<Reply>(question: (master: MasterCommands) => Promise<Reply>): Promise<Reply[]> {
    return Promise.all(this.#nodes.masters.map(async (node) => question(await node.connection())))
  }

  masterOf(key: string): MasterServer {
    return this.#nodes.ownerOf(key)
  }

  probe(): void {
    this.#probe()
  }

  masterNames(): ReadonlySet<string> {
    return new Set(this.#nodes.masters.map(({ name }) => name))
  }

  anyServer(): MasterServer | undefined {
    const { masters } = this.#nodes
    return masters[Math.floor(Math.random() * masters.length)]
  }

  abandon(): void {
    // Each node is reconnected by itself, and there may be another one in its place.
    void this.#nodes.reread()
  }

  async isReplicated(key: string): Promise<boolean | undefined> {
    const { name, options } = this.masterOf(key)
    const check = this.#replicas.get(name) ?? new ReplicaCheck(options)
    this.#replicas.set(name, check)
    return check.ask(key)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#endReads()
    for (const check of this.#replicas.values()) check.close()
    this.#nodes.close()
  }

  /** The store is available while any master is: a lost master takes only its own keys with it. */
  async #probeAll(events: LinkEvents): Promise<void> {
    this.#dropReplicasExceptOf(this.masterNames())
    await Promise.all(
      this.#nodes.masters.map(async (node) => {
        try {
          await this.#probes.ask(this.#nodes, node, events)
          events.alive()
        } catch {
          // A master that hangs may have a successor.
          void this.#nodes.reread(node)
        }
      }),
    )
  }

  #dropReplicasExceptOf(masters: ReadonlySet<string>): void {
    for (const [address, check] of this.#replicas) {
      if (masters.has(address)) continue
      check.close()
      this.#replicas.delete(address)
    }
  }
}
