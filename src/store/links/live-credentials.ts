import { ErrorReply } from '@redis/client'
import { derived, type Changing } from '../../config/changing.ts'
import { redisAccess, type RedisAccess } from '../../config/redis-address.ts'

/** How a server replies that does not take credentials. */
const REFUSAL = /^(WRONGPASS|NOAUTH) /

/** The part of a connection that {@link LiveCredentials} need. */
interface Authenticated extends NodeJS.EventEmitter {
  readonly isReady: boolean
  /** @throws ErrorReply if the server refuses; any other error if the connection is about to close */
  authenticate(access: RedisAccess): Promise<void>
}

/**
 * The user and the password of REDIS_URL. Every connection that opens asks for them, and one that is open is authenticated anew
 * after each change, so that it need not be opened again: nothing that runs on it is lost, and it outlives its old user.
 *
 * A server that did not answer when new credentials were tried may not know them. So a connection that it refuses is followed by
 * one with the credentials before the latest change, until it has refused these, too.
 */
export class LiveCredentials {
  /** For the type of the options of node-redis. */
  readonly type = 'async-credentials-provider' as const
  readonly #access: () => RedisAccess
  readonly #url: Changing<string>
  readonly #onRefused: (error: unknown, server: string) => void
  #former: RedisAccess | undefined
  /** The credentials of the next connection to a server that has refused the new ones. */
  readonly #next = new Map<string, 'former' | 'new'>()

  /**
   * @param onRefused called when a server does not take new credentials: a connection goes on with the former ones, or tries
   * them
   */
  constructor(url: Changing<string>, onRefused: (error: unknown, server: string) => void) {
    this.#url = url
    this.#onRefused = onRefused
    this.#access = derived(url, redisAccess)
    let present = this.access
    url.onChange(() => {
      this.#former = present
      present = this.access
      this.#next.clear()
    })
  }

  /** How to reach a server at present. */
  get access(): RedisAccess {
    return this.#access()
  }

  /** How servers were reached before the latest change. Some may know nothing else yet. */
  get former(): RedisAccess | undefined {
    return this.#former
  }

  async credentials(): Promise<Pick<RedisAccess, 'username' | 'password'>> {
    return this.access
  }

  /** The options of node-redis for one connection, and `attend`, which is to be called with the connection before it is opened. */
  forConnection(server: string) {
    let given = this.access
    let used = given
    const credentials = async (): Promise<RedisAccess> => {
      given = this.access
      return (used = (this.#next.get(server) === 'former' && this.#former) || given)
    }
    const attend = (connection: Authenticated): void => {
      let endFollowing: (() => void) | undefined
      let isBusy = false
      const follow = async (): Promise<void> => {
        if (isBusy) return
        isBusy = true
        // The credentials may change again meanwhile.
        while (given !== this.access && connection.isReady) {
          given = this.access
          await connection.authenticate(given).catch((error: unknown) => this.#onRefused(error, server))
        }
        isBusy = false
      }
      const end = (): void => endFollowing?.()
      connection
        .on('ready', () => {
          this.#next.delete(server)
          end()
          endFollowing = this.#url.onChange(() => void follow())
          // The credentials may have changed while the connection was opening.
          void follow()
        })
        .on('error', (error: unknown) => {
          end()
          if (error instanceof ErrorReply && REFUSAL.test(error.message)) this.#noteRefused(server, used, error)
        })
        .on('end', end)
    }
    return { type: this.type, credentials, attend }
  }

  #noteRefused(server: string, used: RedisAccess, error: ErrorReply): void {
    if (used !== this.access) {
      this.#next.set(server, 'new')
    } else if (this.#former !== undefined && !this.#next.has(server)) {
      this.#next.set(server, 'former')
      this.#onRefused(error, server)
    }
  }
}
