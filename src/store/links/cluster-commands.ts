import type { RedisArgument } from '@redis/client'
import type { ClusterNode, ClusterNodes } from './cluster-nodes.ts'
import { slotOf, targetOf } from './cluster-slots.ts'
import { delay, replyCode, type RedisCommands } from './redis-link.ts'
import { Unsent } from './unsent.ts'

/** How often a command is sent on to another node before it fails. */
const MAX_REDIRECTIONS = 5
/** The pause where only some keys of a command have moved so far. */
const TRYAGAIN_MS = 50

/** Where a command is sent. */
interface Place {
  readonly node: ClusterNode
  /** Whether the node has the key for those alone who were sent to it: its slot is being moved there. */
  readonly isAsked?: boolean
}

/** The commands of a Cluster, each sent to the master of its first key. What a node did not execute is sent to the right one. */
export class ClusterCommands implements RedisCommands {
  readonly #nodes: ClusterNodes

  constructor(nodes: ClusterNodes) {
    this.#nodes = nodes
  }

  readMany(keys: readonly string[]): Promise<(string | null)[]> {
    // MGET fails here, because the keys live on different nodes.
    return Promise.all(keys.map((key) => this.send(key, ['GET', key]) as Promise<string | null>))
  }

  async send(key: string, words: RedisArgument[], hasBytes = false): Promise<unknown> {
    let place: Place | undefined = { node: this.#nodes.ownerOf(key) }
    for (let redirections = 0; ; redirections++) {
      const connection = await place.node.connection.opened().catch((reason: unknown) => {
        throw new Unsent(reason)
      })
      try {
        // Both go out together, so ASKING concerns this command.
        if (place.isAsked) connection.sendCommand(['ASKING']).catch(() => undefined)
        return await connection.send(key, words, hasBytes)
      } catch (error) {
        const next: Place | undefined =
          redirections < MAX_REDIRECTIONS ? await this.#after(error as Error, key, place) : undefined
        if (next === undefined) throw error
        place = next
      }
    }
  }

  /** Where to send a command that a node has not executed; undefined where it may have, or nobody would. */
  async #after(error: Error, key: string, place: Place): Promise<Place | undefined> {
    const { node } = place
    switch (replyCode(error)) {
      case 'MOVED': {
        const owner = this.#nodes.noteMoved(slotOf(key), targetOf(error.message, node))
        void this.#nodes.reread(node)
        return { node: owner }
      }
      case 'ASK':
        return { node: this.#nodes.at(targetOf(error.message, node)), isAsked: true }
      case 'TRYAGAIN':
        await delay(TRYAGAIN_MS)
        return place
      case 'CLUSTERDOWN': {
        await this.#nodes.reread(node)
        const owner = this.#nodes.ownerOf(key)
        return owner === node ? undefined : { node: owner }
      }
      default:
        return undefined
    }
  }
}
