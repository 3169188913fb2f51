import { randomUUID } from 'node:crypto'
import type { ClusterNode } from './cluster-node.ts'
import type { ClusterNodes } from './cluster-nodes.ts'
import { SLOTS } from './cluster-slots.ts'
import { beforeDeadline } from '../../time/deadline.ts'
import { probeKey } from '../keys.ts'
import { MasterProbe } from '../servers/master-probe.ts'
import type { LinkEvents } from './redis-link.ts'
import { reasonOf } from './tracked-connection.ts'

/** A master that does not reply within this time does not serve. */
const REPLY_MS = 1000

/** The probes of the masters of a Cluster, each with a key of a slot that the master owns. */
export class ClusterProbes {
  readonly #id = randomUUID()
  readonly #probes = new WeakMap<ClusterNode, MasterProbe>()

  /** Reports what the master says, or that it says nothing. @throws Error in that case */
  async ask(nodes: ClusterNodes, node: ClusterNode, events: Pick<LinkEvents, 'probed'>): Promise<void> {
    const probe = this.#probeOf(nodes, node)
    // It has lost its last slot meanwhile.
    if (probe === undefined) return
    const asked = node.connection().then((connection) => probe.ask(connection))
    try {
      const report = await beforeDeadline(REPLY_MS, asked)
      if (report !== undefined) events.probed(node.name, report)
    } catch (error) {
      events.probed(node.name, { refusal: reasonOf(error as Error), refused: [], clock: undefined })
      throw error
    }
  }

  #probeOf(nodes: ClusterNodes, node: ClusterNode): MasterProbe | undefined {
    const known = this.#probes.get(node)
    if (known !== undefined && nodes.owns(node, known.key)) return known
    for (let count = 0; count < SLOTS; count++) {
      const key = probeKey(`${this.#id}.${count}`)
      if (!nodes.owns(node, key)) continue
      const probe = new MasterProbe(key)
      this.#probes.set(node, probe)
      return probe
    }
    return undefined
  }
}
