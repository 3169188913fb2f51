import { ConfirmingServer } from './confirming-server.ts'
import { REPLACE, runScript } from './scripts.ts'
import { watchReplication } from './replication-watch.ts'
import { replyCode, type Connection, type MasterServer, type RedisLink } from './redis-link.ts'
import { StoreUnavailable, type ConfirmableWrites } from './store.ts'

/** What the store is told. */
interface Events {
  /** A server has replied with this error code. */
  errorCode(code: string): void
  /** A write was not confirmed. */
  unconfirmed(): void
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
}

/** The writes of a Redis that count once a number of replicas have confirmed them. */
export class ConfirmedWrites implements ConfirmableWrites {
  readonly #link: RedisLink
  readonly #replicas: number
  readonly #events: Events
  readonly #endWatch: () => void
  #replication: readonly string[] = []
  /** By the name of the master. */
  readonly #servers = new Map<string, ConfirmingServer>()
  readonly #failures = new Map<string, string>()

  constructor(link: RedisLink, replicas: number, events: Events) {
    this.#link = link
    this.#replicas = replicas
    this.#events = events
    this.#endWatch = watchReplication(link, replicas, (warnings) => (this.#replication = warnings))
  }

  async create(key: string, value: string, expiresAt: number): Promise<boolean> {
    const options = { condition: 'NX', expiration: { type: 'PXAT', value: expiresAt } } as const
    return (await this.#write(key, (connection) => connection.set(key, value, options))) !== null
  }

  async replace(key: string, expected: string, value: string, expiresAt: number): Promise<boolean> {
    const args = [expected, value, expiresAt]
    return (await this.#write(key, (connection) => runScript(connection, REPLACE, [key], args))) === 1
  }

  /** Warnings for an operator. */
  warnings(): string[] {
    const masters = this.#link.masterNames()
    const current = [...this.#failures].filter(([name]) => masters.has(name))
    const failures = [...new Set(current.map(([, reason]) => reason))].map(
      (reason) => `calls with an Idempotency-Key are refused, since no replicas confirm their records (${reason})`,
    )
    return [...failures, ...this.#replication]
  }

  close(): void {
    this.#endWatch()
    for (const server of this.#servers.values()) server.close()
  }

  async #write<Reply>(key: string, run: (connection: Connection) => Promise<Reply>): Promise<Reply> {
    try {
      return await this.#serverOf(key).write(key, run)
    } catch (cause) {
      const code = replyCode(cause)
      if (code !== undefined) this.#events.errorCode(code)
      this.#events.unconfirmed()
      throw new StoreUnavailable(cause)
    }
  }

  /** @throws Error while there is no master */
  #serverOf(key: string): ConfirmingServer {
    const master = this.#link.masterOf(key)
    return this.#servers.get(master.name) ?? this.#added(master)
  }

  #added({ name, options }: MasterServer): ConfirmingServer {
    const masters = this.#link.masterNames()
    for (const [other, server] of this.#servers) {
      if (masters.has(other)) continue
      server.close()
      this.#servers.delete(other)
      this.#failures.delete(other)
    }
    const { log } = this.#events
    const server = new ConfirmingServer(options, this.#replicas, {
      failed: (reason) => {
        this.#failures.set(name, reason)
        log.warn({ reason, needed: this.#replicas }, 'calls with an Idempotency-Key are refused: no replicas confirm')
      },
      recovered: () => {
        this.#failures.delete(name)
        log.info({}, 'calls with an Idempotency-Key are accepted again: replicas confirm')
      },
    })
    this.#servers.set(name, server)
    return server
  }
}
