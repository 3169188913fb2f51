import type { RedisClientOptions } from '@redis/client'
import type { RedisNode } from '../../config/redis-address.ts'
import { addressOf } from './cluster-slots.ts'
import type { Connection } from './connection.ts'
import { LastingConnection } from './lasting-connection.ts'
import type { LiveCredentials } from './live-credentials.ts'
import { nodeOptions, type MasterServer } from './redis-link.ts'

/** How long the commands may take that were sent to a node before it was given up. */
const CLOSE_MS = 2000

/** What a {@link ClusterNode} needs of those that know the others. */
export interface NodeEvents {
  owns(node: ClusterNode, key: string): boolean
  /** Asks for a sign of life. */
  ask(node: ClusterNode, connection: Connection): Promise<unknown>
  /** The node is lost, or could not be reached. */
  lost(node: ClusterNode, reason: string): void
}

/** A node of a Cluster. */
export class ClusterNode implements RedisNode, MasterServer {
  readonly host: string
  readonly port: number
  /** Its address. */
  readonly name: string
  readonly options: RedisClientOptions
  readonly #events: NodeEvents
  readonly #connection: LastingConnection
  #wasTried = false

  constructor({ host, port }: RedisNode, credentials: LiveCredentials, events: NodeEvents) {
    this.host = host
    this.port = port
    this.name = addressOf(this)
    this.options = nodeOptions(this, credentials)
    this.#events = events
    this.#connection = new LastingConnection({
      find: async () => this,
      ask: (connection) => events.ask(this, connection),
      up: () => (this.#wasTried = true),
      lost: (reason) => {
        this.#wasTried = true
        events.lost(this, reason)
      },
    })
  }

  owns(key: string): boolean {
    return this.#events.owns(this, key)
  }

  /** The connection. Waits for the first try. @throws Error at once while there is none later */
  async connection(): Promise<Connection> {
    return this.#wasTried ? this.#connection.present : this.#connection.next()
  }

  /** Asks for a sign of life, beside the questions that come by themselves. */
  ask(): void {
    void this.#connection.ask()
  }

  /** Lets go of the node once it has replied to what was sent. */
  close(): Promise<void> {
    return this.#connection.close(CLOSE_MS)
  }

  /** Lets go of it at once. */
  drop(): void {
    void this.#connection.close()
  }
}
