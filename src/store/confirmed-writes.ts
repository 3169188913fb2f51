import { ConfirmingServer } from './confirming-server.ts'
import { methodsOf, type Command, type SkewMs } from './command.ts'
import { CONFIRMABLE } from './data-commands.ts'
import { replyCode, type MasterServer, type RedisLink } from './redis-link.ts'
import { StoreUnavailable } from './store.ts'

/** What the store is told. */
interface Events {
  /** A server has replied with this error code. */
  errorCode(code: string): void
  readonly skewMs: SkewMs
  /** A write was not confirmed. */
  unconfirmed(): void
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
}

/** The writes of a Redis that count once a number of replicas have confirmed them. */
export class ConfirmedWrites {
  readonly writes = methodsOf(CONFIRMABLE, this)
  readonly #link: RedisLink
  readonly #replicas: number
  readonly #events: Events
  /** By the name of the master. */
  readonly #servers = new Map<string, ConfirmingServer>()

  constructor(link: RedisLink, replicas: number, events: Events) {
    this.#link = link
    this.#replicas = replicas
    this.#events = events
  }

  /** Warnings for an operator. */
  warnings(): string[] {
    const masters = this.#link.masterNames()
    const failures = [...this.#servers].flatMap(([name, { failure }]) => (masters.has(name) ? (failure ?? []) : []))
    return [...new Set(failures)].map(
      (reason) => `calls with an Idempotency-Key are refused, since no replicas confirm their records (${reason})`,
    )
  }

  close(): void {
    for (const server of this.#servers.values()) server.close()
  }

  async run<Args extends readonly unknown[], Reply>(command: Command<never, Args, Reply>, args: Args): Promise<Reply> {
    const { skewMs } = this.#events
    const key = args[0] as string
    try {
      const reply = await this.#serverOf(key).write(key, (connection) => command.send(connection, skewMs, ...args))
      return command.reply(reply, skewMs, ...args)
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
    }
    const { log } = this.#events
    const server = new ConfirmingServer(options, this.#replicas, {
      failed: (reason) =>
        log.warn({ reason, needed: this.#replicas }, 'calls with an Idempotency-Key are refused: no replicas confirm'),
      recovered: () => log.info({}, 'calls with an Idempotency-Key are accepted again: replicas confirm'),
    })
    this.#servers.set(name, server)
    return server
  }
}
