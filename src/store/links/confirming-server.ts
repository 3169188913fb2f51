import { randomUUID } from 'node:crypto'
import { polls } from '../../time/polls.ts'
import { beforeDeadline } from '../../time/deadline.ts'
import type { Connection } from './connection.ts'
import { LastingConnection } from './lasting-connection.ts'
import { reasonOf, replyCode, type MasterServer } from './redis-link.ts'

/** How long a master waits for its replicas (WAIT). */
const WAIT_MS = 500
/** Time for the replies of the master besides that. */
const REPLY_MS = 500
/** Timeout for opening the connection. */
const OPEN_MS = 1000
/** How long a failure counts, until a probe shows that replicas confirm again. */
const PROBE_INTERVAL_MS = 1000
/** Writes that share one WAIT. More would delay what else this process has to do. */
const MAX_WRITES = 500

/** Replies of a Cluster's server that names another one for the key. */
const MOVED: ReadonlySet<string | undefined> = new Set(['MOVED', 'ASK'])

/** Too few replicas have confirmed a write. */
class TooFewReplicas extends Error {}

/** What a {@link ConfirmingServer} reports. */
interface ConfirmingEvents {
  /** From now on writes fail at once, and a probe is made every second. */
  failed(reason: string): void
  recovered(): void
}

interface Write {
  readonly run: (connection: Connection) => Promise<unknown>
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Writes to one master that count once its replicas have confirmed them. Writes and WAIT go over a connection that nothing else
 * uses, since WAIT speaks of the writes of its own connection and blocks it. Those that come while a WAIT runs share the next.
 *
 * After WAIT the server must still be the master that it was when the connection was opened, by the id of its replication. A
 * server that was demoted and promoted again meanwhile has dropped the write, and a WAIT after that would confirm it all the same.
 */
export class ConfirmingServer {
  readonly #master: MasterServer
  readonly #replicas: number
  readonly #events: ConfirmingEvents
  #connection: LastingConnection | undefined
  /** The id of the master's replication when a connection was opened. */
  readonly #replicationIds = new WeakMap<Connection, string>()
  #waiting: Write[] = []
  #isWorking = false
  #failure: Error | undefined
  /** A key of this server, for the probes. */
  #latestKey = ''
  #endProbes: () => void = () => undefined
  #isClosed = false

  constructor(master: MasterServer, replicas: number, events: ConfirmingEvents) {
    this.#master = master
    this.#replicas = replicas
    this.#events = events
  }

  /** Why writes fail at present, for an operator. */
  get failure(): string | undefined {
    const error = this.#failure
    return error instanceof TooFewReplicas ? error.message : error && reasonOf(error)
  }

  /**
   * Runs a command that writes a key, and waits for the replicas. If it rejects, the write may have happened.
   * @throws Error at once after a failure
   */
  write<Reply>(key: string, run: (connection: Connection) => Promise<Reply>): Promise<Reply> {
    if (this.#isClosed) return Promise.reject(new Error('the master was replaced'))
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#latestKey = key
    return new Promise<Reply>((resolve, reject) => {
      this.#waiting.push({ run, resolve: (reply) => resolve(reply as Reply), reject })
      void this.#work()
    })
  }

  close(): void {
    this.#isClosed = true
    this.#endProbes()
    void this.#connection?.close()
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    let batch: Write[] = []
    try {
      const connection = await this.#opened()
      while (this.#waiting.length > 0) {
        batch = this.#waiting.splice(0, MAX_WRITES)
        const replies = await this.#confirmed(connection, batch)
        for (const [index, reply] of replies.entries()) {
          if (reply.status === 'fulfilled') batch[index]?.resolve(reply.value)
          else batch[index]?.reject(reply.reason)
        }
        batch = []
      }
    } catch (error) {
      this.#fail(error as Error, [...batch, ...this.#waiting.splice(0)])
    } finally {
      this.#isWorking = false
    }
  }

  /** @throws Error unless the replicas have confirmed all of the writes */
  async #confirmed(connection: Connection, batch: readonly Write[]): Promise<PromiseSettledResult<unknown>[]> {
    // All are sent in this order at once.
    const writes = Promise.allSettled(batch.map(({ run }) => run(connection)))
    const rest = Promise.all([writes, connection.wait(this.#replicas, WAIT_MS), replicationOf(connection)])
    const [replies, confirmations, replication] = await beforeDeadline(WAIT_MS + REPLY_MS, rest)
    if (replication !== this.#replicationIds.get(connection)) throw new Error('the master was replaced')
    if (confirmations < this.#replicas) {
      throw new TooFewReplicas(`${confirmations} of ${this.#replicas} replicas confirmed`)
    }
    return replies
  }

  #opened(): Promise<Connection> {
    this.#connection ??= new LastingConnection({
      find: async () => this.#master,
      open: async (connection) => {
        await connection.connect()
        this.#replicationIds.set(connection, await replicationOf(connection))
      },
    })
    return beforeDeadline(OPEN_MS, this.#connection.next())
  }

  /** What the connection says from now on is not believed. One that is being opened may succeed. */
  #leave(): void {
    if (this.#connection?.isUp === true) this.#connection.drop('no replica confirms')
  }

  #fail(error: Error, writes: readonly Write[]): void {
    if (!(error instanceof TooFewReplicas)) this.#leave()
    for (const { reject } of writes) reject(error)
    if (this.#isClosed || this.#failure !== undefined) return
    this.#failure = error
    this.#events.failed(this.failure ?? '')
    this.#endProbes = polls(() => this.#probe(), PROBE_INTERVAL_MS)
  }

  /** Writes a key beside the latest one. The failure is over once the replicas confirm it. */
  async #probe(): Promise<void> {
    // The braces put it into the same slot of a Cluster.
    const key = `{${this.#latestKey}}:probe`
    const run = (connection: Connection): Promise<unknown> =>
      connection.set(key, randomUUID(), { expiration: { type: 'PX', value: PROBE_INTERVAL_MS } })
    try {
      const [reply] = await this.#confirmed(await this.#opened(), [{ run, resolve: ignore, reject: ignore }])
      // The slot of the key may have moved, and the other slots are still served here.
      if (reply?.status === 'rejected' && !MOVED.has(replyCode(reply.reason))) throw reply.reason
      this.#endProbes()
      this.#failure = undefined
      this.#events.recovered()
    } catch (error) {
      if (!(error instanceof TooFewReplicas) && replyCode(error) === undefined) this.#leave()
    }
  }
}

const ignore = (): void => undefined

/** The id of the replication of a master. It changes with each promotion. @throws Error when the server is no master */
async function replicationOf(connection: Connection): Promise<string> {
  const { role, master_replid: id } = await connection.info('replication')
  if (role !== 'master' || id === undefined) throw new Error(`it is a ${role}`)
  return id
}
