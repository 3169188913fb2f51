import { beforeDeadline } from '../../time/deadline.ts'
import type { Connection } from './connection.ts'
import { LastingConnection } from './lasting-connection.ts'
import type { FindMaster } from './redis-link.ts'
import { Unsent } from './unsent.ts'

/** Timeout for opening the connection. */
const OPEN_MS = 1000
/** Time for the replies of the master, besides that for which it waits. */
const REPLY_MS = 500
/** Writes that share one WAIT. More would delay what else this process has to do. */
const MAX_WRITES = 500

/** Too few replicas have confirmed a write. */
class TooFewReplicas extends Error {}

/** The terms on which a write counts. */
interface Terms {
  /** How many replicas must have it. */
  readonly replicas: number
  /** How long the master waits for them (ms). */
  readonly waitMs: number
  /** Tells whether the server is still what it was when the connection was opened: its reply must be the same. */
  readonly identify?: (connection: Connection) => Promise<string>
  /** Called when writes were not confirmed, after their callers were told. */
  readonly failed?: (error: Error) => void
}

interface Write {
  readonly run: (connection: Connection) => Promise<unknown>
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Writes to one master that count once its replicas have them (WAIT). They go over a connection that nothing else uses, since
 * WAIT speaks of the writes of its own connection and blocks it. Those that come while a WAIT runs share the next. The connection
 * is opened with the first.
 */
export class ReplicatedWrites {
  readonly #find: FindMaster
  readonly #terms: Terms
  readonly #identities = new WeakMap<Connection, string>()
  #connection: LastingConnection | undefined
  #waiting: Write[] = []
  #isWorking = false

  constructor(find: FindMaster, terms: Terms) {
    this.#find = find
    this.#terms = terms
  }

  /** The connection. @throws Error where it cannot be opened in time */
  connection(): Promise<Connection> {
    this.#connection ??= new LastingConnection({
      find: this.#find,
      open: async (connection) => {
        await connection.connect()
        const { identify } = this.#terms
        if (identify !== undefined) this.#identities.set(connection, await identify(connection))
      },
    })
    return beforeDeadline(OPEN_MS, this.#connection.next())
  }

  /** Runs a command that writes, and waits for the replicas. If it rejects, the write may have happened, unless it was {@link Unsent}. */
  write<Reply>(run: (connection: Connection) => Promise<Reply>): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      this.#waiting.push({ run, resolve: (reply) => resolve(reply as Reply), reject })
      void this.#work()
    })
  }

  /** Opens another connection, since the server is none to write to. */
  leave(reason: string): void {
    this.#connection?.drop(reason)
  }

  close(): void {
    void this.#connection?.close()
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    let batch: Write[] = []
    try {
      const connection = await this.connection()
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
      // The connection is not believed from now on. One that is being opened may succeed.
      if (!(error instanceof TooFewReplicas) && this.#connection?.isUp === true)
        this.#connection.drop('no replica confirms')
      for (const { reject } of batch) reject(error)
      for (const { reject } of this.#waiting.splice(0)) reject(new Unsent(error))
      this.#terms.failed?.(error as Error)
    } finally {
      this.#isWorking = false
    }
  }

  /** @throws Error unless the replicas have confirmed all of the writes */
  async #confirmed(connection: Connection, batch: readonly Write[]): Promise<PromiseSettledResult<unknown>[]> {
    const { replicas, waitMs, identify } = this.#terms
    // All are sent in this order at once.
    const writes = Promise.allSettled(batch.map(({ run }) => run(connection)))
    const rest = Promise.all([writes, connection.wait(replicas, waitMs), identify?.(connection)])
    const [replies, confirmations, identity] = await beforeDeadline(waitMs + REPLY_MS, rest)
    if (identity !== this.#identities.get(connection)) throw new Error('the master was replaced')
    if (confirmations < replicas) throw new TooFewReplicas(`${confirmations} of ${replicas} replicas confirmed`)
    return replies
  }
}
