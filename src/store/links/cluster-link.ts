import type { RedisNode } from '../../config/redis-address.ts'
import { beforeDeadline, CommandTimeout } from '../../time/deadline.ts'
import { polls } from '../../time/polls.ts'
import { ClusterCommands } from './cluster-commands.ts'
import { ClusterNodes, type ClusterNode } from './cluster-nodes.ts'
import { targetOf } from './cluster-slots.ts'
import type { Connection } from './connection.ts'
import { reconnectMs } from './lasting-connection.ts'
import type { LiveCredentials } from './live-credentials.ts'
import {
  delay,
  reasonOf,
  type LinkEvents,
  type MasterServer,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'

/** A master that does not reply within this time does not serve. */
const REPLY_MS = 1000
/** How often the link asks who owns which slots. */
const SLOTS_INTERVAL_MS = 5000

/**
 * The link to a Redis Cluster: a connection to each master. It does not track keys: a master reports those that move away, but once
 * it is cut off from the others nothing that its successor changes. The store is available while any master is: a lost master takes
 * only its own keys with it.
 */
export class ClusterLink implements RedisLink {
  readonly tracks = false
  readonly #nodes: ClusterNodes
  readonly #commands: ClusterCommands
  #events: LinkEvents | undefined
  #endReads: () => void = () => undefined
  #isClosed = false

  constructor(seeds: readonly RedisNode[], credentials: LiveCredentials) {
    this.#nodes = new ClusterNodes(seeds, credentials, {
      ask: (node, connection) => this.#ask(node, connection),
      unreached: (node, reason) => this.#events?.unreached(node.name, reason),
    })
    this.#commands = new ClusterCommands(this.#nodes)
  }

  async open(events: LinkEvents): Promise<void> {
    this.#events = events
    for (let tries = 0; !this.#isClosed && !(await this.#nodes.read()); tries++) {
      events.lost('no node of the Cluster names its masters')
      await delay(reconnectMs(tries))
    }
    // Whether any master serves is known before the store is up.
    const opened = this.#nodes.masters.map(async (node) => {
      const asked = node.connection.opened().then((connection) => events.opened(node, connection))
      await beforeDeadline(REPLY_MS, asked).catch((error: unknown) =>
        events.unreached(node.name, reasonOf(error as Error)),
      )
    })
    await Promise.all(opened)
    if (this.#isClosed) return
    events.up()
    this.#endReads = polls(async () => void (await this.#nodes.read()), SLOTS_INTERVAL_MS)
  }

  commands(): RedisCommands {
    return this.#commands
  }

  untracked(): RedisCommands {
    return this.#commands
  }

  askMasters<Reply>(question: (master: Connection) => Promise<Reply>): Promise<(Reply | undefined)[]> {
    const ask = ({ connection }: ClusterNode) => connection.opened().then(question)
    return Promise.all(this.#nodes.masters.map((node) => ask(node).catch(() => undefined)))
  }

  masterOf(key: string, redirection?: string): MasterServer {
    const owner = this.#nodes.ownerOf(key)
    return redirection === undefined ? owner : this.#nodes.at(targetOf(redirection, owner))
  }

  probe(): void {
    for (const node of this.#nodes.masters) void node.connection.ask()
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

  async close(): Promise<void> {
    this.#isClosed = true
    this.#endReads()
    this.#nodes.close()
  }

  /** The connection is given up later than the master is said to be silent. */
  #ask(node: ClusterNode, connection: Connection): Promise<unknown> {
    // One that owns no slot has no key to ask for.
    if (!this.#nodes.masters.includes(node)) return connection.ping()
    const asked = this.#events?.ask(node, connection) ?? connection.ping()
    beforeDeadline(REPLY_MS, asked).catch((error: unknown) => {
      if (!(error instanceof CommandTimeout)) return
      this.#events?.unreached(node.name, reasonOf(error))
      // A master that hangs may have a successor.
      void this.#nodes.reread(node)
    })
    return asked
  }
}
