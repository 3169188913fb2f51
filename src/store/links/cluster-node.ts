import type { RedisClientOptions } from '@redis/client'
import type { RedisNode } from '../../config/redis-address.ts'
import { addressOf } from './cluster-slots.ts'
import { CONNECTION, newConnection, SOCKET, type Connection } from './connection.ts'
import { beforeDeadline } from '../../time/deadline.ts'
import type { LiveCredentials } from './live-credentials.ts'
import { delay, liveNodeOptions, reconnectMs, type MasterServer } from './redis-link.ts'

/** A connection that is silent for this long is reopened. The event loop may be blocked for nearly as long. */
const MAX_SILENCE_MS = 4000
/** How long the commands may take that were sent to a node before it was given up. */
const CLOSE_MS = 2000

/** A node of a Cluster, over one connection that is opened again after each loss. */
export class ClusterNode implements RedisNode, MasterServer {
  readonly host: string
  readonly port: number
  /** Its address. */
  readonly name: string
  readonly options: RedisClientOptions
  readonly #onLost: () => void
  #connection!: Connection
  #opened: Promise<Connection> | undefined
  #isClosed = false

  /** @param onLost called after each loss, and each vain try */
  constructor({ host, port }: RedisNode, credentials: LiveCredentials, onLost: () => void) {
    this.host = host
    this.port = port
    this.name = addressOf(this)
    this.options = liveNodeOptions(this, credentials)
    this.#onLost = onLost
    void this.#run()
  }

  /** The connection. Waits for the first one. @throws Error while there is none after a loss */
  async connection(): Promise<Connection> {
    return this.#opened as Promise<Connection>
  }

  /** Lets go of the node once it has replied to what was sent. */
  async close(): Promise<void> {
    this.#isClosed = true
    const connection = this.#connection
    if (connection.isReady) await beforeDeadline(CLOSE_MS, connection.close()).catch(() => undefined)
    connection.destroy()
  }

  /** Lets go of it at once. */
  drop(): void {
    this.#isClosed = true
    this.#connection.destroy()
  }

  async #run(): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      if (await this.#serve()) tries = 0
      if (this.#isClosed) return
      this.#onLost()
      await delay(reconnectMs(tries))
    }
  }

  /** Opens a connection, and waits for its end. Returns whether it was open. */
  async #serve(): Promise<boolean> {
    const socket = { ...this.options.socket, ...SOCKET, socketTimeout: MAX_SILENCE_MS, reconnectStrategy: false }
    // The probe takes the place of the pings of the library.
    const options = { ...this.options, ...CONNECTION, pingInterval: 0, socket }
    const connection = newConnection(options as RedisClientOptions)
    const ended = new Promise<void>((resolve) => connection.on('error', () => resolve()).on('end', resolve))
    this.#connection = connection
    const opening = connection.connect().then(() => connection)
    this.#opened ??= opening
    try {
      await opening
      this.#opened = opening
      await ended
      return true
    } catch {
      return false
    } finally {
      connection.destroy()
    }
  }
}
