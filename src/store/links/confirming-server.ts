import { randomUUID } from 'node:crypto'
import { polls } from '../../time/polls.ts'
import type { Connection } from './connection.ts'
import { reasonOf, replyCode, type FindMaster } from './redis-link.ts'
import { ReplicatedWrites } from './replicated-writes.ts'
import { Unsent } from './unsent.ts'

/** How long a master waits for its replicas (WAIT). */
const WAIT_MS = 500
/** How long a failure counts, until a probe shows that replicas confirm again. */
const PROBE_INTERVAL_MS = 1000

/** Replies of a Cluster's server that names another one for the key. */
const MOVED: ReadonlySet<string | undefined> = new Set(['MOVED', 'ASK'])

/** The reports of a {@link ConfirmingServer}. */
interface ConfirmingEvents {
  /** From now on writes fail at once, and a probe is made every second. */
  failed(reason: string): void
  recovered(): void
}

/**
 * Writes to one master that its replicas must confirm, and that fail at once while they do not.
 *
 * After WAIT the server must still be the master that it was when the connection was opened, by the id of its replication. A
 * server that was demoted and promoted again meanwhile has dropped the write, and a WAIT after that may confirm it all the same.
 */
export class ConfirmingServer {
  readonly #writes: ReplicatedWrites
  readonly #events: ConfirmingEvents
  #failure: Error | undefined
  /** A key of this server, for the probes. */
  #latestKey = ''
  #endProbes: () => void = () => undefined
  #isClosed = false

  constructor(find: FindMaster, replicas: number, events: ConfirmingEvents) {
    const failed = (error: Error): void => this.#fail(error)
    this.#writes = new ReplicatedWrites(find, { replicas, waitMs: WAIT_MS, identify: replicationOf, failed })
    this.#events = events
  }

  /** Why writes fail at present, for an operator. */
  get failure(): string | undefined {
    return this.#failure && reasonOf(this.#failure)
  }

  /**
   * Runs a command that writes a key, and waits for the replicas. If it rejects, the write may have happened.
   * @throws Unsent at once after a failure
   */
  async write<Reply>(key: string, run: (connection: Connection) => Promise<Reply>): Promise<Reply> {
    const failure = this.#isClosed ? new Error('the master was replaced') : this.#failure
    if (failure !== undefined) throw new Unsent(failure)
    this.#latestKey = key
    return this.#writes.write(run)
  }

  close(): void {
    this.#isClosed = true
    this.#endProbes()
    this.#writes.close()
  }

  #fail(error: Error): void {
    if (this.#isClosed || this.#failure !== undefined) return
    this.#failure = error
    this.#events.failed(this.failure ?? '')
    this.#endProbes = polls(() => this.#probe(), PROBE_INTERVAL_MS)
  }

  /** Writes a key beside the latest one. The failure is over once the replicas confirm it. */
  async #probe(): Promise<void> {
    // The braces put it into the same slot of a Cluster.
    const key = `{${this.#latestKey}}:probe`
    const expiration = { type: 'PX', value: PROBE_INTERVAL_MS } as const
    const written = this.#writes.write((connection) => connection.set(key, randomUUID(), { expiration }))
    // The slot of the key may have moved, and the other slots are still served here.
    const isConfirmed = await written.then(
      () => true,
      (error: unknown) => MOVED.has(replyCode(error)),
    )
    if (!isConfirmed) return
    this.#endProbes()
    this.#failure = undefined
    this.#events.recovered()
  }
}

/** The id of the replication of a master. It changes with each promotion. @throws Error when the server is no master */
async function replicationOf(connection: Connection): Promise<string> {
  const { role, master_replid: id } = await connection.info('replication')
  if (role !== 'master' || id === undefined) throw new Error(`it is a ${role}`)
  return id
}
