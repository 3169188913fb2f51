import { polls } from '../time/polls.ts'
import { ConfirmingServer } from './confirming-server.ts'
import { REPLACE, runScript } from './scripts.ts'
import { parseInfo, type ServerInfo } from './server-facts.ts'
import type { Connection } from './connection.ts'
import { replyCode, type MasterCommands, type MasterServer, type RedisLink } from './redis-link.ts'
import { StoreUnavailable, type ConfirmableWrites } from './store.ts'

/** How often the masters are asked for their replication. */
const LOOK_INTERVAL_MS = 15_000
/** The first look comes soon after the start. */
const FIRST_LOOK_MS = 1000

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
    const failures = [...this.#servers].flatMap(([name, { failure }]) => (masters.has(name) ? (failure ?? []) : []))
    const refusals = [...new Set(failures)].map(
      (reason) => `calls with an Idempotency-Key are refused, since no replicas confirm their records (${reason})`,
    )
    return [...refusals, ...this.#replication]
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

/** What makes confirmations by replicas worth less than they seem, of one server, for an operator. */
export function replicationWarnings(info: ServerInfo, replicas: number): string[] {
  const warnings: string[] = []
  if (info['aof_enabled'] === '0') {
    warnings.push(
      'Redis has no append-only file: a master that restarts comes back without the records of Idempotency-Keys, and a repeated order could be sent twice. Set appendonly yes.',
    )
  }
  const connected = Number(info['connected_slaves'] ?? 0)
  if (info['role'] === 'master' && connected > replicas) {
    warnings.push(
      `Redis has ${connected} replicas, and IDEMPOTENCY_REPLICAS is ${replicas}: if one without a record of an Idempotency-Key is promoted, a repeated order could be sent twice. Set it to the number of replicas that may be promoted.`,
    )
  }
  if (info['role'] === 'master' && connected < replicas) {
    warnings.push(
      `Redis has ${connected} replicas, and IDEMPOTENCY_REPLICAS is ${replicas}: calls with an Idempotency-Key are refused until there are more.`,
    )
  }
  return warnings
}

/**
 * Asks the masters at intervals for what {@link replicationWarnings} needs. A server that is lost, or may not be asked, changes
 * nothing.
 * @returns ends the questions
 */
function watchReplication(
  link: Pick<RedisLink, 'askMasters'>,
  replicas: number,
  warn: (warnings: readonly string[]) => void,
): () => void {
  const look = async (): Promise<void> => {
    const infos = await link.askMasters(infoOf).catch(() => undefined)
    if (infos !== undefined) warn([...new Set(infos.flatMap((info) => replicationWarnings(info, replicas)))])
  }
  return polls(look, LOOK_INTERVAL_MS, FIRST_LOOK_MS)
}

async function infoOf(master: MasterCommands): Promise<ServerInfo> {
  const [replication, persistence] = await Promise.all([master.info('replication'), master.info('persistence')])
  return { ...parseInfo(replication), ...parseInfo(persistence) }
}
