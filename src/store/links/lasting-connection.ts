import type { RedisClientOptions } from '@redis/client'
import { dialing } from '../../peers/dialing.ts'
import { backoffMs } from '../../time/backoff.ts'
import { beforeDeadline, CommandTimeout } from '../../time/deadline.ts'
import { polls } from '../../time/polls.ts'
import { vital } from '../../time/vital.ts'
import { newConnection, type Connection } from './connection.ts'
import { delay, reasonOf, type FindMaster, type MasterServer } from './redis-link.ts'

/** Timeout until TCP and TLS are connected. */
const CONNECT_MS = 2000
/** Timeout for a connection that opens until it may be used: a server may accept it and never reply. */
const OPEN_MS = 2500
/** How often a server is asked for a sign of life. */
const ASK_MS = 1000
/** A server that has not replied to such a question after this time is left. */
const MAX_SILENCE_MS = 3000

/** The use that is made of a {@link LastingConnection}. */
interface Purpose {
  /** The server to reach, asked for before each try. Undefined while none is known. Never rejects. */
  readonly find: FindMaster
  /** Opens a connection and makes it ready for use. By default it is only opened. Rejects where it is of no use. */
  readonly open?: (connection: Connection, server: MasterServer) => Promise<unknown>
  /** Asks for a sign of life. A PING by default. */
  readonly ask?: (connection: Connection, server: MasterServer) => Promise<unknown>
  /** The connection is open, perhaps again. */
  readonly up?: (server: MasterServer) => void
  /** The connection is lost, or could not be opened. @param wasUp tells a loss from a vain try */
  readonly lost?: (reason: string, wasUp: boolean) => void
}

/**
 * A connection to a server that is opened again after each loss, until it is closed. It uses neither the reconnecting nor the
 * timeout of node-redis: the first would return to a server that is no master any more, and the second, after this process
 * stood still, judges a server before what arrived meanwhile has been read.
 */
export class LastingConnection {
  readonly #purpose: Purpose
  #present: { readonly connection: Connection; readonly server: MasterServer } | undefined
  #attempt = attempt()
  #wasTried = false
  #end: (reason: string) => void = () => undefined
  #isClosed = false

  constructor(purpose: Purpose) {
    this.#purpose = purpose
    vital(this.#run())
  }

  get isUp(): boolean {
    return this.#present !== undefined
  }

  /** The open connection. @throws Error while there is none */
  get present(): Connection {
    if (this.#present === undefined) throw new Error('there is no connection')
    return this.#present.connection
  }

  /** The open connection. Waits for the first try. @throws Error at once while there is none later */
  async opened(): Promise<Connection> {
    return this.#wasTried ? this.present : this.next()
  }

  /** The open connection, or the one of the present or next try. Rejects if that fails. */
  next(): Promise<Connection> {
    return this.#attempt.promise
  }

  /** Asks for a sign of life, beside the questions that come by themselves. Never rejects. */
  async ask(): Promise<void> {
    if (this.#present === undefined) return
    const { connection, server } = this.#present
    const reply = this.#purpose.ask?.(connection, server) ?? connection.ping()
    await beforeDeadline(MAX_SILENCE_MS, reply).catch((error: unknown) => {
      if (this.#present?.connection !== connection) return
      if (error instanceof CommandTimeout) this.drop('silence')
      // Any other error is a reply, unless the loss of the connection was not reported.
      else if (!connection.isReady) this.drop('closed')
    })
  }

  /** Leaves the server. Another connection is opened. */
  drop(reason: string): void {
    this.#end(reason)
  }

  /** @param graceMs for how long at most the connection stays for the replies to what was sent */
  async close(graceMs = 0): Promise<void> {
    this.#isClosed = true
    const connection = this.#present?.connection
    if (graceMs > 0 && connection !== undefined) {
      await beforeDeadline(graceMs, connection.close()).catch(() => undefined)
    }
    this.#end('closed')
  }

  async #run(): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      const server = await this.#purpose.find()
      if (!this.#isClosed && server !== undefined && (await this.#serveFrom(server))) tries = 0
      if (!this.#isClosed) await delay(reconnectMs(tries))
    }
    this.#attempt.reject(new Error('closed'))
  }

  /** Stays connected to a server until it is lost. Returns whether it ever was connected. */
  async #serveFrom(server: MasterServer): Promise<boolean> {
    const connection = newConnection(lasting(server.options))
    const over = Promise.withResolvers<undefined>()
    let hasServed = false
    const end = (reason: string): void => {
      if (this.#end !== end) return
      this.#end = () => undefined
      this.#present = undefined
      this.#wasTried = true
      if (hasServed) this.#attempt = attempt()
      connection.destroy()
      if (!this.#isClosed) this.#purpose.lost?.(reason, hasServed)
      over.resolve(undefined)
    }
    this.#end = end
    // Until it is open, the promise below rejects, and knows more.
    connection
      .on('error', (error: Error) => hasServed && end(reasonOf(error, server.options)))
      .on('end', () => hasServed && end('closed'))
    let failure: unknown = new Error(`no connection to ${server.name}`)
    try {
      const { open = () => connection.connect() } = this.#purpose
      await beforeDeadline(OPEN_MS, open(connection, server))
    } catch (error) {
      failure = error
      end(reasonOf(error as Error, server.options))
    }
    if (this.#end !== end) {
      this.#attempt.reject(failure)
      this.#attempt = attempt()
      return false
    }
    hasServed = this.#wasTried = true
    this.#present = { connection, server }
    this.#attempt.resolve(connection)
    this.#purpose.up?.(server)
    const endAsking = polls(() => this.ask(), ASK_MS)
    await over.promise
    endAsking()
    return true
  }
}

/** The pause before the next try to connect (ms). */
export function reconnectMs(tries: number): number {
  return backoffMs(tries, { firstMs: 100, longestMs: 1100, jitter: 0.5 })
}

function lasting(options: RedisClientOptions): RedisClientOptions {
  const socket = {
    ...options.socket,
    connectTimeout: CONNECT_MS,
    ...dialing('redis', CONNECT_MS),
    reconnectStrategy: false,
  }
  // While the connection is down a command fails at once. A queued command would take effect later, unexpectedly.
  return { ...options, socket, disableOfflineQueue: true } as RedisClientOptions
}

function attempt(): PromiseWithResolvers<Connection> {
  const opening = Promise.withResolvers<Connection>()
  opening.promise.catch(() => undefined)
  return opening
}
