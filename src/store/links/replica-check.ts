import type { RedisClientOptions } from '@redis/client'
import { beforeDeadline } from '../../time/deadline.ts'
import { CONNECTION, newConnection, SOCKET, type Connection } from './connection.ts'
import { MARK, runScript } from '../scripts.ts'

/** How long a master waits for its replica (WAIT). */
const WAIT_MS = 200
/** Timeout for the master's reply. */
const REPLY_TIMEOUT_MS = 1000
/** A connection that is silent for this long is closed, and the next check opens another one: nothing else here would notice. */
const MAX_SILENCE_MS = 2500

/**
 * Asks one master whether a replica has everything written so far. WAIT blocks its connection, so the check has its own.
 * Callers that ask while a check runs share the next one.
 */
export class ReplicaCheck {
  readonly #options: RedisClientOptions
  /** The present one, or the one that is being opened. */
  #connection: Promise<Connection> | undefined
  #isClosed = false
  #running: Promise<boolean | undefined> | undefined
  #next: Promise<boolean | undefined> | undefined
  #hadReplica = false

  constructor(options: RedisClientOptions) {
    const socket = { ...options.socket, ...SOCKET, socketTimeout: MAX_SILENCE_MS, reconnectStrategy: false }
    this.#options = { ...options, ...CONNECTION, socket } as RedisClientOptions
    this.#open().catch(() => undefined)
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
    this.#isClosed = true
    this.#connection?.then(
      (connection) => connection.destroy(),
      () => undefined,
    )
  }

  #open(): Promise<Connection> {
    if (this.#isClosed) return Promise.reject(new Error('closed'))
    const connection = newConnection(this.#options)
    const opening = connection.connect().then(() => connection)
    const forget = (): void => {
      if (this.#connection === opening) this.#connection = undefined
    }
    connection.on('error', forget).on('end', forget)
    return (this.#connection = opening)
  }

  #start(key: string): Promise<boolean | undefined> {
    const reply = beforeDeadline(REPLY_TIMEOUT_MS, this.#ask(key)).catch(() => false)
    this.#running = reply.finally(() => (this.#running = undefined))
    return this.#running
  }

  async #ask(key: string): Promise<boolean | undefined> {
    const connection = await (this.#connection ?? this.#open())
    // A master names its replicas.
    const [, , known] = await connection.role()
    const isNamed = Array.isArray(known) && known.length > 0
    // A master no longer names a replica whose connection has closed.
    if (!isNamed) return this.#hadReplica ? false : undefined
    this.#hadReplica = true
    // WAIT covers only the writes of its own connection, so this one writes a marker after the write in question. The
    // braces put the marker into the same slot, and it expires by itself.
    const marker = runScript(connection, MARK, [`{${key}}:ended`])
    const [, replicas] = await Promise.all([marker, connection.wait(1, WAIT_MS)])
    return replicas >= 1
  }
}
