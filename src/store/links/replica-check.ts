import { beforeDeadline } from '../../time/deadline.ts'
import { LastingConnection } from './lasting-connection.ts'
import type { MasterServer } from './redis-link.ts'

/** How long a master waits for its replica (WAIT). */
const WAIT_MS = 200
/** Timeout for the master's reply. */
const REPLY_TIMEOUT_MS = 1000

/** Writes what expires by itself, even when the server is full. */
const MARK = `#!lua flags=allow-oom
return redis.call('SET', KEYS[1], '', 'PX', 1000)`

/**
 * Asks one master whether a replica has everything written so far. WAIT blocks its connection, so the check has its own.
 * Callers that ask while a check runs share the next one.
 */
export class ReplicaCheck {
  readonly #connection: LastingConnection
  #running: Promise<boolean | undefined> | undefined
  #next: Promise<boolean | undefined> | undefined
  #hadReplica = false

  constructor(master: MasterServer) {
    this.#connection = new LastingConnection({ find: async () => master, lost: () => (this.#hadReplica = false) })
  }

  /** Undefined where there has been no replica so far. Also false when the master does not reply. Never rejects. */
  ask(key: string): Promise<boolean | undefined> {
    if (this.#running === undefined) return this.#start(key)
    // The running check may have begun before the caller wrote.
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      return this.#start(key)
    })
    return this.#next
  }

  close(): void {
    void this.#connection.close()
  }

  #start(key: string): Promise<boolean | undefined> {
    const reply = beforeDeadline(REPLY_TIMEOUT_MS, this.#ask(key)).catch(() => false)
    this.#running = reply.finally(() => (this.#running = undefined))
    return this.#running
  }

  async #ask(key: string): Promise<boolean | undefined> {
    const connection = await this.#connection.next()
    // A master names its replicas.
    const [, , known] = await connection.role()
    const isNamed = Array.isArray(known) && known.length > 0
    // A master no longer names a replica whose connection has closed.
    if (!isNamed) return this.#hadReplica ? false : undefined
    this.#hadReplica = true
    // WAIT covers only the writes of its own connection, so this one writes a marker after the write in question. The
    // braces put the marker into the same slot, and it expires by itself.
    const marker = connection.eval(MARK, { keys: [`{${key}}:ended`], arguments: [] })
    const [, replicas] = await Promise.all([marker, connection.wait(1, WAIT_MS)])
    return replicas >= 1
  }
}
