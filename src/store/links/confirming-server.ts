import { randomUUID } from 'node:crypto'
import type { RedisClientOptions } from '@redis/client'
import { polls } from '../../time/polls.ts'
import { beforeDeadline } from '../../time/deadline.ts'
import { CONNECTION, newConnection, SOCKET, type Connection } from './connection.ts'
import { replyCode } from './redis-link.ts'
import { parseInfo } from '../servers/server-facts.ts'
import { reasonOf } from './tracked-connection.ts'

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
/** A connection that is silent for this long is closed; it is pinged every second. */
const MAX_SILENCE_MS = 4000

/** Replies of a Cluster's server that names another one for the key. */
const MOVED: ReadonlySet<string | undefined> = new Set(['MOVED', 'ASK'])

/** Too few replicas have confirmed a write. */
class TooFewReplicas extends Error {}

/** What a server of {@link ConfirmedWrites} reports. */
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
  readonly #options: RedisClientOptions
  readonly #replicas: number
  readonly #events: ConfirmingEvents
  #connection: { readonly wire: Connection; readonly replicationId: string } | undefined
  #waiting: Write[] = []
  #isWorking = false
  #failure: Error | undefined
  /** A key of this server, for the probes. */
  #latestKey = ''
  #endProbes: () => void = () => undefined
  #isClosed = false

  constructor(options: RedisClientOptions, replicas: number, events: ConfirmingEvents) {
    const socket = { ...options.socket, ...SOCKET, socketTimeout: MAX_SILENCE_MS, reconnectStrategy: false }
    this.#options = { ...options, ...CONNECTION, socket } as RedisClientOptions
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
    this.#drop()
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    let batch: Write[] = []
    try {
      const { wire, replicationId } = (this.#connection ??= await this.#open())
      while (this.#waiting.length > 0) {
        batch = this.#waiting.splice(0, MAX_WRITES)
        const replies = await this.#confirmed(wire, replicationId, batch)
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
  async #confirmed(
    wire: Connection,
    replicationId: string,
    batch: readonly Write[],
  ): Promise<PromiseSettledResult<unknown>[]> {
    // All are sent in this order at once.
    const writes = Promise.allSettled(batch.map(({ run }) => run(wire)))
    const rest = Promise.all([writes, wire.wait(this.#replicas, WAIT_MS), replicationOf(wire)])
    const [replies, confirmations, replication] = await beforeDeadline(WAIT_MS + REPLY_MS, rest)
    if (replication !== replicationId) throw new Error('the master was replaced')
    if (confirmations < this.#replicas) {
      throw new TooFewReplicas(`${confirmations} of ${this.#replicas} replicas confirmed`)
    }
    return replies
  }

  async #open(): Promise<{ wire: Connection; replicationId: string }> {
    const wire = newConnection(this.#options)
    wire.on('error', () => undefined).on('end', () => this.#forget(wire))
    try {
      const replicationId = await beforeDeadline(
        OPEN_MS,
        wire.connect().then(() => replicationOf(wire)),
      )
      if (this.#isClosed) throw new Error('closed')
      return { wire, replicationId }
    } catch (error) {
      wire.destroy()
      throw error
    }
  }

  #fail(error: Error, writes: readonly Write[]): void {
    if (!(error instanceof TooFewReplicas)) this.#drop()
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
    const run = (wire: Connection): Promise<unknown> =>
      wire.set(key, randomUUID(), { expiration: { type: 'PX', value: PROBE_INTERVAL_MS } })
    try {
      const { wire, replicationId } = (this.#connection ??= await this.#open())
      const [reply] = await this.#confirmed(wire, replicationId, [{ run, resolve: ignore, reject: ignore }])
      // The slot of the key may have moved, and the other slots are still served here.
      if (reply?.status === 'rejected' && !MOVED.has(replyCode(reply.reason))) throw reply.reason
      this.#endProbes()
      this.#failure = undefined
      this.#events.recovered()
    } catch (error) {
      if (!(error instanceof TooFewReplicas) && replyCode(error) === undefined) this.#drop()
    }
  }

  #forget(wire: Connection): void {
    if (this.#connection?.wire === wire) this.#connection = undefined
  }

  #drop(): void {
    this.#connection?.wire.destroy()
    this.#connection = undefined
  }
}

const ignore = (): void => undefined

/** The id of the replication of a master. It changes with each promotion. @throws Error when the server is no master */
async function replicationOf(wire: Connection): Promise<string> {
  const { role, master_replid: id } = parseInfo(await wire.info('replication'))
  if (role !== 'master' || id === undefined) throw new Error(`it is a ${role}`)
  return id
}
