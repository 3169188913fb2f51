import { derived, type Changing } from '../config/changing.ts'
import { redisAccess, type RedisAccess } from '../config/redis-address.ts'

/** The part of a connection that {@link LiveCredentials} need. */
interface Authenticated {
  sendCommand(words: readonly string[]): Promise<unknown>
}

/**
 * The user and the password of REDIS_URL. Every connection that opens asks for them, and {@link follow} gives new ones to a
 * connection that is open (AUTH), so that it need not be opened again: nothing that runs on it is lost, and it outlives its old
 * user.
 */
export class LiveCredentials {
  readonly type = 'async-credentials-provider'
  readonly #access: () => RedisAccess
  readonly #url: Changing<string>
  readonly #onRefused: (error: unknown) => void

  /** @param onRefused called with the error of each open connection that does not take new ones */
  constructor(url: Changing<string>, onRefused: (error: unknown) => void) {
    this.#url = url
    this.#onRefused = onRefused
    this.#access = derived(url, redisAccess)
  }

  /** How to reach a server at present. */
  get access(): RedisAccess {
    return this.#access()
  }

  /** For node-redis. */
  async credentials(): Promise<Pick<RedisAccess, 'username' | 'password'>> {
    return this.access
  }

  /** Authenticates an open connection anew after each change. @returns ends that */
  follow(connection: Authenticated): () => void {
    return this.#url.onChange(() => this.authenticate(connection))
  }

  /** If Redis refuses, the connection stays as it is. */
  authenticate(connection: Authenticated): void {
    const { username, password } = this.access
    if (password === undefined) return
    const words = username === undefined ? ['AUTH', password] : ['AUTH', username, password]
    connection.sendCommand(words).catch(this.#onRefused)
  }

  /** Calls the listener after each change. @returns ends the calls */
  onChange(listener: () => void): () => void {
    return this.#url.onChange(listener)
  }
}
