import { createClient, type RedisClientOptions } from 'redis'
import {
  backoffMs,
  CONNECTION,
  SOCKET,
  type LinkEvents,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'
import { ReplicaCheck } from './replica-check.ts'

/** The link to one server, whose changes it hears. */
export class MasterLink implements RedisLink {
  readonly tracks = true
  readonly #client: ReturnType<typeof createClient>
  readonly #replicas: ReplicaCheck

  /** @param reconnects false: once lost it stays lost, and `lost` is its last word */
  constructor(options: RedisClientOptions, { reconnects = true } = {}) {
    const socket = { ...options.socket, ...SOCKET, reconnectStrategy: reconnects ? backoffMs : false }
    const tracking = { ...options, ...CONNECTION, emitInvalidate: true, socket }
    this.#client = createClient(tracking as RedisClientOptions)
    this.#replicas = new ReplicaCheck(options)
  }

  async open(events: LinkEvents): Promise<void> {
    this.#client
      .on('error', (error: Error & { code?: string }) => events.lost(error.code ?? error.name))
      .on('reconnecting', () => events.lost('reconnecting'))
      .on('end', () => events.lost('closed'))
      .on('ready', () => events.up())
      .on('ping-interval', () => events.answered())
      .on('invalidate', (key: Buffer | string | null) => events.changed(key?.toString()))
    // It only rejects when closed while still connecting, or when it is not to try again: both are heard above.
    await this.#client.connect().catch(() => undefined)
  }

  commands(): RedisCommands {
    return this.#client
  }

  /** Whether the server takes writes: a demoted one would not. */
  async isMaster(): Promise<boolean> {
    const role: { role: string } | undefined = await this.#client.role()
    return role?.role === 'master'
  }

  isReplicated(key: string): Promise<boolean | undefined> {
    return this.#replicas.ask(key)
  }

  async close(): Promise<void> {
    this.#replicas.close()
    if (this.#client.isReady) await this.#client.close().catch(() => undefined)
    else this.drop()
  }

  /** Closes without waiting for anything. */
  drop(): void {
    this.#replicas.close()
    if (this.#client.isOpen) this.#client.destroy()
  }
}
