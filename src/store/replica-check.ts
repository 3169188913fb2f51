import type { RedisClientOptions } from 'redis'
import { backoffMs, connection, CONNECTION, delay, WATCHED_SOCKET, type Connection } from './redis-link.ts'

/** How long a master waits for its replica (WAIT), and how long we wait for the master. */
const WAIT_MS = 200
const DEADLINE_MS = 1000

/**
 * Asks one master whether a replica has everything written so far, on a connection of its own, since WAIT holds up
 * whatever comes after it. Who asks while an answer is awaited shares the next one.
 */
export class ReplicaCheck {
  readonly #client: Connection
  readonly #connecting: Promise<unknown>
  #running: Promise<boolean | undefined> | undefined
  #next: Promise<boolean | undefined> | undefined

  constructor(options: RedisClientOptions) {
    const socket = { ...options.socket, ...WATCHED_SOCKET, reconnectStrategy: backoffMs }
    this.#client = connection({ ...options, ...CONNECTION, socket })
    this.#client.on('error', () => undefined)
    this.#connecting = this.#client.connect().catch(() => undefined)
  }

  /** Undefined where there is no replica. False also when the master does not answer. */
  ask(key: string): Promise<boolean | undefined> {
    if (this.#running === undefined) return this.#start(key)
    // What runs may have begun before the caller wrote.
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      return this.#start(key)
    })
    return this.#next
  }

  close(): void {
    if (this.#client.isOpen) this.#client.destroy()
  }

  #start(key: string): Promise<boolean | undefined> {
    const deadline = delay(DEADLINE_MS).then(() => false)
    const answer = Promise.race([this.#ask(key), deadline]).catch(() => false)
    this.#running = answer.finally(() => (this.#running = undefined))
    return this.#running
  }

  async #ask(key: string): Promise<boolean | undefined> {
    await this.#connecting
    const role = await this.#client.role()
    if (role === undefined || !('replicas' in role) || !role.replicas?.length) return undefined
    // WAIT speaks of what its own connection wrote last, so it writes something, after what it is asked about: in the
    // same slot (the braces), and gone by itself.
    const marker = this.#client.set(`{${key}}:ended`, '', { expiration: { type: 'PX', value: 1000 } })
    const [, replicas] = await Promise.all([marker, this.#client.wait(1, WAIT_MS)])
    return replicas >= 1
  }
}
