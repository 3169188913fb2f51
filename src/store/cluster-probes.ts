import { randomUUID } from 'node:crypto'
import type { Connection } from './connection.ts'
import { beforeDeadline } from './deadline.ts'
import { probeKey } from './keys.ts'
import { probeMaster } from './master-probe.ts'
import type { LinkEvents } from './redis-link.ts'
import { reasonOf } from './tracked-connection.ts'

/** A master that does not reply within this time does not serve. */
const REPLY_MS = 1000
const SLOTS = 16_384

/** What the probes need of node-redis's client of a Cluster. */
interface ClusterClient<Node> {
  readonly slots: readonly ({ readonly master: { readonly address: string } } | undefined)[]
  nodeClient(node: Node): Promise<Pick<Connection, 'eval'>> | Pick<Connection, 'eval'>
}

/** The probes of the masters of a Cluster, each with a key of a slot that the master owns. */
export class ClusterProbes {
  readonly #id = randomUUID()
  /** By the address of a master. */
  readonly #keys = new Map<string, string>()

  /** Reports what the master says, or that it says nothing. @throws Error in that case */
  async ask<Node extends { readonly address: string }>(
    client: ClusterClient<Node>,
    node: Node,
    events: Pick<LinkEvents, 'probed'>,
  ): Promise<void> {
    const key = this.#keyOf(client, node.address)
    // It has lost its last slot, and the client does not know yet that it is no master any more.
    if (key === undefined) return
    const asked = Promise.resolve(client.nodeClient(node)).then((server) => probeMaster(server, key))
    try {
      const report = await beforeDeadline(REPLY_MS, asked)
      if (report !== undefined) events.probed(node.address, report)
    } catch (error) {
      events.probed(node.address, { refusal: reasonOf(error as Error), refused: [], clock: undefined })
      throw error
    }
  }

  #keyOf({ slots }: ClusterClient<never>, address: string): string | undefined {
    const isThere = (key: string): boolean => slots[slotOf(key)]?.master.address === address
    const known = this.#keys.get(address)
    if (known !== undefined && isThere(known)) return known
    for (let count = 0; count < SLOTS; count++) {
      const key = probeKey(`${this.#id}.${count}`)
      if (!isThere(key)) continue
      this.#keys.set(address, key)
      return key
    }
    return undefined
  }
}

/** CRC16 (XMODEM) of the key (redis.io/docs/reference/cluster-spec: keys distribution model). Ours hold no braces. */
export function slotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(key)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc % SLOTS
}
