import type { RedisClientOptions } from '@redis/client'
import { clusterSize, MEMBER_ADVICE } from './cluster-slots.ts'
import { beforeDeadline } from './deadline.ts'
import { CONNECTION, newConnection, SOCKET, type Connection } from './connection.ts'
import { mayLackDatabase, replyCode, type LinkEvents, type RedisCommands } from './redis-link.ts'

/** Timeout for connecting, and again for preparing the connection: a server may accept it and never reply. */
const OPEN_MS = 2500
const CLOSE_MS = 1000

/**
 * One connection to one server, which reports changes to the keys that were read over it (CLIENT TRACKING). Once lost,
 * it does not reconnect.
 *
 * NOLOOP: the server does not report the connection's own writes, but stops watching their keys all the same. So a
 * writer must forget the key, or read it in the same step after writing. When the table of watched keys is full, the
 * server evicts a key to make room for one that is read here, and does not report that either. So it watches only what
 * must be watched (OPTOUT), and never a key that a stranger made up.
 */
export class TrackedConnection {
  readonly #connection: Connection
  readonly #options: RedisClientOptions

  constructor(options: RedisClientOptions) {
    this.#options = options
    const socket = { ...options.socket, ...SOCKET, reconnectStrategy: false }
    const tracking = { ...options, ...CONNECTION, emitInvalidate: true, socket }
    this.#connection = newConnection(tracking as RedisClientOptions)
  }

  /** @throws Error when no server is there, or the server is not ready or not a master */
  async open(events: Pick<LinkEvents, 'alive' | 'changed' | 'lost'>): Promise<void> {
    this.#connection
      .on('error', (error: Error) => events.lost(reasonOf(error, this.#options)))
      .on('end', () => events.lost('closed'))
      .on('ping-interval', () => events.alive())
      .on('invalidate', (key: Buffer | string | null) => events.changed(key?.toString()))
    await beforeDeadline(OPEN_MS, this.#connection.connect())
    const preparing = Promise.all([
      // The ACL may forbid ROLE. Then the first write shows whether the server is a master.
      this.#connection.role().catch(() => undefined),
      this.#connection.sendCommand(['CLIENT', 'TRACKING', 'ON', 'OPTOUT', 'NOLOOP']),
      // A server that is still loading its data refuses this.
      this.#connection.ping(),
      // The ACL may forbid this. Then the refusal of the keys that others have (MOVED) shows it.
      clusterSize(this.#connection).catch(() => 1),
    ])
    const [[role] = ['master'], , , size] = await beforeDeadline(OPEN_MS, preparing)
    if (size > 1) throw new Error(`it is one of ${size} masters of a Cluster. ${MEMBER_ADVICE}`)
    if (role !== 'master') throw new Error(`it is a ${role}`)
  }

  commands(): RedisCommands {
    return this.#connection
  }

  /** For a single command whose keys the server does not watch. */
  untracked(): Connection {
    // The ACL may forbid this. Then the server watches the keys needlessly.
    this.#connection.sendCommand(['CLIENT', 'CACHING', 'NO']).catch(() => undefined)
    return this.#connection
  }

  async close(): Promise<void> {
    if (this.#connection.isReady) await beforeDeadline(CLOSE_MS, this.#connection.close()).catch(() => undefined)
    this.drop()
  }

  /** Closes without waiting for anything, also when the library still waits for replies. Does nothing the second time. */
  drop(): void {
    this.#connection.destroy()
  }
}

/** A short reason for an error of a connection with these options, for the log. */
export function reasonOf(error: Error & { code?: string }, options: RedisClientOptions = {}): string {
  if (mayLackDatabase(error, options)) return 'ERR: the database at the end of REDIS_URL may not exist'
  return replyCode(error) ?? error.code ?? (error.name === 'Error' ? error.message : error.name)
}
