import { createKey, REPLACE, runScript } from './scripts.ts'
import type { Connection } from './links/connection.ts'
import { replyCode } from './links/redis-link.ts'
import type { Replicas } from './links/replicas.ts'
import { StoreUnavailable, type ConfirmableWrites } from './store.ts'

/** What the store is told. */
interface Events {
  /** A server has replied with this error code. */
  errorCode(code: string): void
  /** How far the clock of the master that holds a key is ahead of the store's (ms). */
  skewMs(key: string): number
  /** A write was not confirmed. */
  unconfirmed(): void
}

/** The writes of a Redis that count once a number of replicas have confirmed them. */
export class ConfirmedWrites implements ConfirmableWrites {
  readonly #replicas: Replicas
  readonly #needed: number
  readonly #events: Events

  /** @param needed how many replicas have to confirm */
  constructor(replicas: Replicas, needed: number, events: Events) {
    this.#replicas = replicas
    this.#needed = needed
    this.#events = events
  }

  async create(key: string, value: string, expiresAt: number): Promise<boolean> {
    const at = (): number => expiresAt + this.#events.skewMs(key)
    return (await this.#write(key, (connection) => createKey(connection, key, value, at()))) !== null
  }

  async replace(key: string, expected: string, value: string, expiresAt: number): Promise<boolean> {
    const args = (): (string | number)[] => [expected, value, expiresAt + this.#events.skewMs(key)]
    return (await this.#write(key, (connection) => runScript(connection, REPLACE, [key], args()))) === 1
  }

  async #write<Reply>(key: string, run: (connection: Connection) => Promise<Reply>): Promise<Reply> {
    try {
      return await this.#replicas.write(key, this.#needed, run)
    } catch (cause) {
      const code = replyCode(cause)
      if (code !== undefined) this.#events.errorCode(code)
      this.#events.unconfirmed()
      throw new StoreUnavailable(cause)
    }
  }
}
