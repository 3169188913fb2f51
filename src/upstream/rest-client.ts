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
  readonly #pool: Pool
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
    this.#pool = new Pool(origin, {
      connections,
      // Over HTTP/2 undici does not tell whether a request was sent, and one broken connection fails many of them.
      allowH2: false,
      connect: this.#connector(),
      // Looked at whenever a request comes: a connection that is older finishes what it has, and gets nothing more. Else
      // one that is in use would never leave an address that DNS no longer gives.
      clientTtl: config.maxConnectionMs,
      keepAliveTimeout: idleMs ?? IDLE_MS,
      ...(idleMs !== undefined && { keepAliveMaxTimeout: idleMs }),
      bodyTimeout: config.bodyMs,
      maxHeaderSize: MAX_HEADER_BYTES,
    })
    this.#pool.on('drain', () => (this.#isFull = false))
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
    await Promise.race([this.#pool.close(), grace])
    clearTimeout(timer)
    await this.#pool.destroy()
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
