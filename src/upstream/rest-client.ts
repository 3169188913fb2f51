import type { Readable } from 'node:stream'
import { buildConnector, Pool, type Dispatcher } from 'undici'
import type { Config } from '../config/config.ts'
import { Collecting, type FetchOutcome } from './collecting.ts'
import { CONNECTIONS } from './connections.ts'
import { Forwarding, type ForwardingOptions, type ForwardOutcome, type ForwardRequest } from './forwarding.ts'
import { Queued } from './queued.ts'
import { discard } from './request-body.ts'

/** One request to the upstream REST API, its path already built from the catalog. */
export interface RestRequest {
  readonly method: Dispatcher.HttpMethod
  /** Path below API_URL, with the query. */
  readonly path: string
  /** Flat list of names and values. */
  readonly headers: readonly string[]
  readonly body: Readable | Buffer | null
  /** Longest wait for the head of the answer, or for all of it where it is read whole; else UPSTREAM_HEADERS_SECONDS. */
  readonly timeoutMs?: number | undefined
}

/** Connections of one client. */
export interface ConnectionOptions {
  readonly connections?: number
  /**
   * A connection that was idle for longer is not used again. Unless said it is what upstream's `Keep-Alive` says, with two
   * seconds to spare, or four seconds.
   */
  readonly idleMs?: number
}

const IDLE_MS = 4000
/** Requests that may wait for a connection; more would only wait longer than anybody does. */
const MAX_WAITING = 1024
const MAX_HEADER_BYTES = 32_768
/** What was sent and whose browser has left is let finish for this long when the server stops. */
const CLOSE_GRACE_MS = 5000

/** Connections to the upstream REST API, kept alive for a while. Redirects are not followed, bodies not decoded, nothing retried. */
export class RestClient {
  #pool: Pool
  /** When it is replaced (epoch ms). */
  #retireAt = 0
  /** Pools that were replaced and still have something under way. */
  readonly #retired = new Set<Pool>()
  readonly #origin: string
  readonly #idleMs: number | undefined
  readonly #basePath: string
  readonly #connections: number
  readonly #config: Config['upstream']
  #running = 0
  /** Every connection is taken: who comes now waits for one. */
  #isFull = false
  /** While listeners hear of the failure of a connection. */
  #isFailing = false
  readonly #isCut = (): boolean => this.#isFailing
  readonly #forwardingOptions: ForwardingOptions

  constructor(
    config: Config['upstream'],
    { connections = CONNECTIONS.reads, idleMs }: ConnectionOptions = {},
  ) {
    const { origin, pathname } = new URL(config.apiUrl)
    this.#config = config
    this.#connections = connections
    this.#basePath = pathname === '/' ? '' : pathname
    this.#forwardingOptions = {
      stallMs: config.bodyMs,
      onSettled: () => void this.#running--,
      isCut: this.#isCut,
    }
    this.#origin = origin
    this.#idleMs = idleMs
    this.#pool = this.#createPool()
  }

  /** Sends a request and streams its answer to the browser. Never rejects. */
  forward(request: RestRequest, to: ForwardRequest): Promise<ForwardOutcome> {
    // It may have left while its session was looked up, or between two tries: nobody would tell any more.
    if (to.response.destroyed) return Promise.resolve({ is: 'browserGone', sent: 'nothing', status: 0 })
    const forwarding = new Forwarding(to, this.#forwardingOptions)
    this.#running++
    this.#dispatch(request, forwarding)
    return forwarding.outcome
  }

  /**
   * Sends a request and reads its answer whole, however it ends. Never rejects.
   * @param signal breaks it off
   */
  exchange(request: RestRequest, signal?: AbortSignal): Promise<FetchOutcome> {
    const collecting = new Collecting(request.timeoutMs ?? this.#config.headersMs, this.#isCut, signal)
    this.#dispatch(request, collecting)
    return collecting.outcome
  }

  /** Ends all connections; what is under way may finish, for a while. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const grace = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_GRACE_MS)
    })
    const pools = [this.#pool, ...this.#retired]
    await Promise.race([Promise.allSettled(pools.map((pool) => pool.close())), grace])
    clearTimeout(timer)
    await Promise.all(pools.map((pool) => pool.destroy()))
  }

  #createPool(): Pool {
    const { bodyMs, maxConnectionMs } = this.#config
    const pool = new Pool(this.#origin, {
      connections: this.#connections,
      // Over HTTP/2 undici does not tell whether a request was sent, and one broken connection fails many of them.
      allowH2: false,
      connect: this.#connector(),
      keepAliveTimeout: this.#idleMs ?? IDLE_MS,
      ...(this.#idleMs !== undefined && { keepAliveMaxTimeout: this.#idleMs }),
      bodyTimeout: bodyMs,
      maxHeaderSize: MAX_HEADER_BYTES,
    })
    pool.on('drain', () => {
      if (pool === this.#pool) this.#isFull = false
    })
    this.#retireAt = Date.now() + maxConnectionMs
    return pool
  }

  /**
   * Has new requests use new connections: one that is in use would never leave an address that DNS no longer gives. What is
   * under way, or waits for a connection, is not touched. (undici's clientTtl looks at every connection for every request.)
   */
  #replacePool(): void {
    const old = this.#pool
    this.#pool = this.#createPool()
    this.#isFull = false
    this.#retired.add(old)
    const forget = (): void => void this.#retired.delete(old)
    old.close().then(forget, forget)
  }

  /** Connections whose failures are heard of here before undici hears of them. */
  #connector(): buildConnector.connector {
    const connect = buildConnector({ timeout: this.#config.connectMs, allowH2: false })
    return (options, callback) =>
      connect(options, (...result) => {
        const [, socket] = result
        socket?.on('error', (error) => {
          // A response without a length ends with its connection, and undici takes a reset for such an end.
          this.#isFailing = true
          process.nextTick(() => (this.#isFailing = false))
          // An alert of TLS is followed by the end of the connection, which undici would name as the cause.
          socket.destroy(error)
        })
        callback(...result)
      })
  }

  #dispatch({ method, path, headers, body, timeoutMs }: RestRequest, handler: Forwarding | Collecting): void {
    try {
      if (this.#running > this.#connections + MAX_WAITING)
        throw new Error('too many requests wait for upstream')
      if (Date.now() >= this.#retireAt) this.#replacePool()
      const hasFree = this.#pool.dispatch(
        {
          path: this.#basePath + path,
          method,
          headers: headers as string[],
          body,
          headersTimeout: timeoutMs ?? this.#config.headersMs,
        },
        this.#isFull ? new Queued(handler, this.#config.connectMs, body) : handler,
      )
      this.#isFull = !hasFree
    } catch (error) {
      discard(body)
      handler.onResponseError(undefined, error as Error)
    }
  }
}
