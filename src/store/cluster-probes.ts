import { randomUUID } from 'node:crypto'
import type { ClusterNode } from './cluster-node.ts'
import type { ClusterNodes } from './cluster-nodes.ts'
import { SLOTS } from './cluster-slots.ts'
import { beforeDeadline } from './deadline.ts'
import { probeKey } from './keys.ts'
import { probeMaster } from './master-probe.ts'
import type { LinkEvents } from './redis-link.ts'
import { reasonOf } from './tracked-connection.ts'

/** A master that does not reply within this time does not serve. */
const REPLY_MS = 1000

/** The probes of the masters of a Cluster, each with a key of a slot that the master owns. */
export class ClusterProbes {
  readonly #id = randomUUID()
  readonly #keys = new WeakMap<ClusterNode, string>()

  /** Reports what the master says, or that it says nothing. @throws Error in that case */
  async ask(nodes: ClusterNodes, node: ClusterNode, events: Pick<LinkEvents, 'probed'>): Promise<void> {
    const key = this.#keyOf(nodes, node)
    // It has lost its last slot meanwhile.
    if (key === undefined) return
    const asked = node.connection().then((connection) => probeMaster(connection, key))
    try {
      const report = await beforeDeadline(REPLY_MS, asked)
      if (report !== undefined) events.probed(node.name, report)
    } catch (error) {
      events.probed(node.name, { refusal: reasonOf(error as Error), refused: [], clock: undefined })
      throw error
    }
  }

  #keyOf(nodes: ClusterNodes, node: ClusterNode): string | undefined {
    const known = this.#keys.get(node)
    if (known !== undefined && nodes.owns(node, known)) return known
    for (let count = 0; count < SLOTS; count++) {
      const key = probeKey(`${this.#id}.${count}`)
      if (!nodes.owns(node, key)) continue
      this.#keys.set(node, key)
      return key
    }
    return undefined
  }
}
