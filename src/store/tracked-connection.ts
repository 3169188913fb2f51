import type { RedisClientOptions } from 'redis'
import {
  connection,
  CONNECTION,
  replyCode,
  SOCKET,
  type Connection,
  type LinkEvents,
  type RedisCommands,
  within,
} from './redis-link.ts'

/** A server that takes connections but does not answer is left after so long. */
const OPEN_MS = 2500
const CLOSE_MS = 1000

/**
 * One connection to one server, which says what changes of what was read here (CLIENT TRACKING). It does not come
 * back once it is lost.
 *
 * NOLOOP: who wrote is not told. The server stops watching for it all the same, so whoever writes here must forget
 * the key, or read it in the same step after writing. Nor is it told when the server's table of what it watches is
 * full and forgets a key for the sake of one that was read here: so only what must be watched is (OPTOUT), above all
 * no key that a stranger made up.
 */
export class TrackedConnection {
  readonly #client: Connection

  constructor(options: RedisClientOptions) {
    const socket = { ...options.socket, ...SOCKET, reconnectStrategy: false }
    const tracking = { ...options, ...CONNECTION, emitInvalidate: true, socket }
    this.#client = connection(tracking as RedisClientOptions)
  }

  /** @throws Error when there is no server, or none that serves and takes writes */
  async open(events: Pick<LinkEvents, 'alive' | 'changed' | 'lost'>): Promise<void> {
    this.#client
      .on('error', (error: Error) => events.lost(reasonOf(error)))
      .on('end', () => events.lost('closed'))
      .on('ping-interval', () => events.alive())
      .on('invalidate', (key: Buffer | string | null) => events.changed(key?.toString()))
    await within(OPEN_MS, this.#client.connect())
    const [role] = await within(OPEN_MS, this.#prepare())
    const { role: name } = (role ?? { role: 'master' }) as { role: string }
    if (name !== 'master') throw new Error(`it is a ${name}`)
  }

  #prepare() {
    return Promise.all([
      // Who may not ask is told by the first write.
      this.#client.role().catch(() => undefined),
      this.#client.sendCommand(['CLIENT', 'TRACKING', 'ON', 'OPTOUT', 'NOLOOP']),
      // Refused while the server still loads its data.
      this.#client.ping(),
    ])
  }

  commands(): RedisCommands {
    return this.#client
  }

  /** For one command, whose keys are not watched for us. */
  untracked(): Connection {
    // Who may not say so has them watched for nothing.
    this.#client.sendCommand(['CLIENT', 'CACHING', 'NO']).catch(() => undefined)
    return this.#client
  }

  async close(): Promise<void> {
    if (this.#client.isReady) await within(CLOSE_MS, this.#client.close()).catch(() => undefined)
    this.drop()
  }

  /** Closes without waiting for anything. */
  drop(): void {
    if (this.#client.isOpen) this.#client.destroy()
  }
}

/** A short name of what went wrong, for the log. */
export function reasonOf(error: Error & { code?: string }): string {
  return replyCode(error) ?? error.code ?? (error.name === 'Error' ? error.message : error.name)
}
