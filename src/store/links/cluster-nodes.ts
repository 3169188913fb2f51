import type { RedisNode } from '../../config/redis-address.ts'
import { addressOf, readSlots, slotOf, type Slots } from './cluster-slots.ts'
import { withConnection, type Connection } from './connection.ts'
import { LastingConnection } from './lasting-connection.ts'
import { beforeDeadline } from '../../time/deadline.ts'
import type { LiveCredentials } from './live-credentials.ts'
import { delay, nodeOptions, type MasterServer } from './redis-link.ts'
import { Unsent } from './unsent.ts'

/** Timeout of each node that is asked for the slots. */
const ASK_MS = 1000
/** The slots are read at most this often because a node does not know a key, or is lost. */
const REREAD_MS = 1000
/** How long the commands may take that were sent to a node before it was given up. */
const CLOSE_MS = 2000

/** A node of a Cluster. Its name is its address. */
export interface ClusterNode extends RedisNode, MasterServer {
  readonly connection: LastingConnection
}

/** The questions and the reports of {@link ClusterNodes}. */
interface Events {
  /** Asks a node for a sign of life. */
  ask(node: ClusterNode, connection: Connection): Promise<unknown>
  /** A node could not be reached. */
  unreached(node: ClusterNode, reason: string): void
}

/**
 * The masters of a Cluster, and who owns which slot. Only a master that owns slots is believed: one that was taken out of the
 * Cluster may go on running, and knows nothing. The nodes that REDIS_URL names are asked only who the masters are, and only while
 * none is known that replies.
 */
export class ClusterNodes {
  readonly #seeds: readonly RedisNode[]
  readonly #credentials: LiveCredentials
  readonly #events: Events
  readonly #nodes = new Map<string, ClusterNode>()
  #owners: (ClusterNode | undefined)[] = []
  #masters: readonly ClusterNode[] = []
  #reading: Promise<boolean> | undefined
  #readAt = -Infinity
  #isClosed = false

  constructor(seeds: readonly RedisNode[], credentials: LiveCredentials, events: Events) {
    this.#seeds = seeds
    this.#credentials = credentials
    this.#events = events
  }

  /** The masters that own slots, as far as is known. */
  get masters(): readonly ClusterNode[] {
    return this.#masters
  }

  /** @throws Error while no master is known that has the key */
  ownerOf(key: string): ClusterNode {
    const owner = this.#owners[slotOf(key)]
    if (owner === undefined) throw new Unsent(new Error('no master has the slot'))
    return owner
  }

  /** The node at an address, which is perhaps new. @throws Error after the close */
  at(node: RedisNode): ClusterNode {
    if (this.#isClosed) throw new Error('closed')
    const name = addressOf(node)
    const known = this.#nodes.get(name)
    if (known !== undefined) return known
    const owns = (key: string): boolean => this.#owners[slotOf(key)]?.name === name
    const server = { ...node, name, options: nodeOptions(node, this.#credentials), owns }
    let wasLost = false
    const connection = new LastingConnection({
      find: async () => server,
      ask: (wire) => this.#events.ask(added, wire),
      // What was said of a node that was away is withdrawn at once.
      up: () => void (wasLost && connection.ask()),
      lost: (reason, wasUp) => {
        wasLost = true
        // A connection may be reset, which says nothing of the node.
        if (!wasUp) this.#events.unreached(added, reason)
        void this.reread(added)
      },
    })
    const added: ClusterNode = { ...server, connection }
    this.#nodes.set(name, added)
    return added
  }

  /** A node says that another one owns a slot. Returns that one. */
  noteMoved(slot: number, owner: RedisNode): ClusterNode {
    return (this.#owners[slot] = this.at(owner))
  }

  /** Reads who owns which slot. Returns whether a master told. Never rejects. */
  read(): Promise<boolean> {
    return this.#start(0)
  }

  /** The same because of what a node said or did, from another one, and at most every {@link REREAD_MS}. */
  reread(except?: ClusterNode): Promise<boolean> {
    return this.#start(Math.max(0, this.#readAt + REREAD_MS - performance.now()), except)
  }

  close(): void {
    this.#isClosed = true
    for (const { connection } of this.#nodes.values()) void connection.close()
    this.#nodes.clear()
    this.#owners = this.#masters = []
  }

  #start(inMs: number, except?: ClusterNode): Promise<boolean> {
    this.#reading ??= (inMs === 0 ? this.#read(except) : delay(inMs).then(() => this.#read(except)))
      .catch(() => false)
      .finally(() => {
        this.#reading = undefined
        this.#readAt = performance.now()
      })
    return this.#reading
  }

  async #read(except: ClusterNode | undefined): Promise<boolean> {
    if (this.#isClosed) return false
    const others = shuffled(this.#masters.filter((master) => master !== except))
    return (await this.#readFrom(others)) || this.#readFrom(await this.#namedMasters())
  }

  async #readFrom(nodes: readonly ClusterNode[]): Promise<boolean> {
    for (const node of nodes) {
      const asked = node.connection.opened().then((connection) => readSlots(connection, node))
      const slots = await beforeDeadline(ASK_MS, asked).catch(() => undefined)
      if (this.#isClosed || !slots?.masters.some((master) => addressOf(master) === node.name)) continue
      this.#take(slots)
      return true
    }
    return false
  }

  /** The masters that a node of REDIS_URL names. */
  async #namedMasters(): Promise<ClusterNode[]> {
    const asked = this.#seeds.map(async (seed) => {
      const options = nodeOptions(seed, this.#credentials)
      const { masters } = await withConnection(options, ASK_MS, (connection) => readSlots(connection, seed))
      if (masters.length === 0) throw new Error('the node knows of no slots')
      return masters
    })
    return (await Promise.any(asked)).map((master) => this.at(master))
  }

  #take({ masters, owners }: Slots): void {
    const nodes = new Map(masters.map((master) => [master, this.at(master)]))
    this.#owners = owners.map((owner) => owner && nodes.get(owner))
    this.#masters = [...nodes.values()]
    for (const [address, node] of this.#nodes) {
      if (this.#masters.includes(node)) continue
      this.#nodes.delete(address)
      void node.connection.close(CLOSE_MS)
    }
  }
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ item }) => item)
}
