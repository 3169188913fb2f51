import { AsyncResource } from 'node:async_hooks'
import type { Readable } from 'node:stream'
import { Pool, type buildConnector, type Dispatcher } from 'undici'
import type { Config } from '../config/config.ts'
import type { BudgetClass } from '../config/upstream-budget.ts'
import { connector } from '../peers/dialing.ts'
import { activeSpan, destinationOf, untraced, waiting, type Destination, type Span } from '../telemetry/traces/span.ts'
import { standstill } from '../time/standstill.ts'
import { within } from '../time/within.ts'
import type { Budget, OverBudget, Reservation } from './budget/admission.ts'
import { BufferedExchange, type FetchOutcome } from './buffered-exchange.ts'
import type { Conditions } from './exchange.ts'
import { FirstByte, type FirstByteConditions } from './first-byte.ts'
import { Forwarding, type ForwardingOptions, type ForwardOutcome, type ForwardRequest } from './forwarding.ts'
import { noteUsed } from './no-response.ts'
import { discard } from './request-body.ts'
import { readingHeads } from './response-heads.ts'

/** One request to the upstream REST API. */
export interface RestRequest {
  readonly method: Dispatcher.HttpMethod
  /** Path below API_URL, with the query, already built from the catalog. */
  readonly path: string
  /** The same with the names of its parameters, which is all that traces may have of it. */
  readonly template: string
  /** Flat list of names and values. */
  readonly headers: readonly string[]
  readonly body: Readable | Buffer | null
  /** Response-header timeout, for {@link RestClient.exchange} overall timeout. Default: UPSTREAM_HEADERS_SECONDS. */
  readonly timeoutMs?: number | undefined
  /** Whose request it is, where that is known: the budget is shared fairly among them. */
  readonly subject?: string | undefined
  /** As what the subject counts if upstream's own limits refuse the request; see {@link Budget.admit}. */
  readonly source?: (() => string) | undefined
  /**
   * What must hold when its first byte is about to be written, after every wait. If it does not, nothing is sent, and the token of
   * the budget is free again: the outcome is `stale`, or, of an exchange, `unreachable` because of a NotStarted.
   */
  readonly conditions?: FirstByteConditions | undefined
}

/** How one client uses connections. */
export interface ConnectionOptions {
  readonly connections: number
  /**
   * A connection that was idle for longer is not reused. Default: what upstream's `Keep-Alive` header says, less two
   * seconds, or four seconds without one.
   */
  readonly idleMs?: number
  /** As what the budget counts the requests of this client; reads. */
  readonly budgetClass?: BudgetClass
}

const IDLE_MS = 4000
/** undici's own limit for the headers of an order comes later than ours: only for a request that cannot be written. */
const BACKSTOP_MS = 2000
/** Requests that may wait for a connection. More would only time out. */
const MAX_WAITING = 1024
const MAX_HEADER_BYTES = 32_768
/** One in this many connections may be reading the rest of a response that stays here, when its call is over. */
const DRAINS_PART = 8
/** At shutdown, requests that were sent but whose browsers have left get this long to finish. */
const CLOSE_GRACE_MS = 5000

/** A client of the upstream REST API with its own connections. It does not follow redirects, decode bodies or retry. */
export class RestClient {
  #pool: Pool
  /** When the pool is to be replaced (ms of the clock of {@link standstill}). */
  #replacePoolAt = 0
  /** The standstills of this process before the last request. */
  #standstills = standstill.count
  /** Replaced pools with unfinished requests. */
  readonly #retired = new Set<Pool>()
  readonly #origin: string
  /** For traces. */
  readonly #to: Destination
  readonly #idleMs: number | undefined
  readonly #basePath: string
  readonly #connections: number
  readonly #config: Config['upstream']
  readonly #budget: Budget | undefined
  readonly #budgetClass: BudgetClass
  /** Forwarded requests whose outcome is not known yet. */
  #running = 0
  /** All connections are in use, so the next request has to wait for one. */
  #isFull = false
  /**
   * Those that wait, in their order. undici's own queue would keep a dispatched request that gave up until there is a connection for
   * it, so after an outage upstream would get an empty connection for each call that had failed.
   */
  readonly #line = new Set<() => void>()
  /** True from the error of a connection until its listeners have run. */
  #hasFailingConnection = false
  readonly #isConnectionFailing = (): boolean => this.#hasFailingConnection
  readonly #forwardingOptions: ForwardingOptions

  /** @param budget asked before each request, where there is one */
  constructor(
    config: Config['upstream'],
    { connections, idleMs, budgetClass = 'reads' }: ConnectionOptions,
    budget?: Budget,
  ) {
    const { origin, pathname } = new URL(config.apiUrl)
    this.#config = config
    this.#budget = budget
    this.#budgetClass = budgetClass
    this.#connections = connections
    this.#basePath = pathname === '/' ? '' : pathname
    this.#forwardingOptions = {
      headersMs: config.headersMs,
      stallMs: config.bodyMs,
      drainsLeft: Math.ceil(connections / DRAINS_PART),
      onSettled: () => void this.#running--,
    }
    this.#origin = origin
    this.#to = destinationOf(config.apiUrl)
    this.#idleMs = idleMs
    this.#pool = this.#createPool()
  }

  /** Sends a request and streams its response to the browser. Never rejects. */
  forward(request: RestRequest, forwardRequest: ForwardRequest): Promise<ForwardOutcome> {
    if (this.#budget === undefined) return this.#forward(request, forwardRequest)
    return this.#admitted(this.#budget, request, (reservation) => this.#forward(request, forwardRequest, reservation))
  }

  /**
   * Sends a request and reads its response whole. Never rejects.
   * @param signal aborts the exchange
   */
  exchange(request: RestRequest, signal?: AbortSignal): Promise<FetchOutcome> {
    if (this.#budget === undefined) return this.#exchange(request, signal)
    return this.#admitted(this.#budget, request, (reservation) => this.#exchange(request, signal, reservation))
  }

  /** Closes all connections, after a grace period for unfinished requests. */
  async close(): Promise<void> {
    const pools = [this.#pool, ...this.#retired]
    await within(CLOSE_GRACE_MS, Promise.allSettled(pools.map((pool) => pool.close())))
    await Promise.all(pools.map((pool) => pool.destroy()))
  }

  /** Sends a request once the budget admits it. */
  async #admitted<Outcome>(
    budget: Budget,
    { subject = '', source }: RestRequest,
    send: (reservation: Reservation) => Promise<Outcome>,
  ): Promise<Outcome | OverBudget> {
    const admission = await waiting('wait for the budget', budget.admit(this.#budgetClass, subject, source))
    return admission.is === 'granted' ? send(admission.reservation) : { ...admission, is: 'overBudget' }
  }

  #forward(request: RestRequest, forwardRequest: ForwardRequest, reservation?: Reservation): Promise<ForwardOutcome> {
    // The browser may have left during the session lookup or between two tries: 'close' would not be emitted again.
    if (forwardRequest.response.destroyed) {
      reservation?.end()
      return Promise.resolve({ is: 'browserGone', sent: 'nothing', status: 0 })
    }
    const conditions = this.#begin(request, reservation)
    const forwarding = new Forwarding(forwardRequest, this.#forwardingOptions, conditions)
    this.#running++
    this.#dispatch(request, forwarding, conditions.span)
    return forwarding.outcome
  }

  #exchange(request: RestRequest, signal?: AbortSignal, reservation?: Reservation): Promise<FetchOutcome> {
    if (signal?.aborted) {
      reservation?.end()
      return Promise.resolve({ is: 'unreachable', cause: signal.reason as Error })
    }
    const { timeoutMs = this.#config.headersMs } = request
    const conditions = this.#begin(request, reservation)
    const exchange = new BufferedExchange(timeoutMs, conditions, signal)
    this.#dispatch(request, exchange, conditions.span)
    return exchange.outcome
  }

  #begin({ method, template, conditions = {} }: RestRequest, reservation: Reservation | undefined): Conditions {
    const span = activeSpan().call({ method, template, to: this.#to })
    const firstByte = new FirstByte(conditions, reservation)
    return { reservation, span, firstByte, isConnectionFailing: this.#isConnectionFailing }
  }

  #createPool(): Pool {
    const { bodyMs, maxConnectionMs } = this.#config
    const pool = new Pool(this.#origin, {
      connections: this.#connections,
      // Over HTTP/2, one broken connection fails many requests.
      allowH2: false,
      connect: this.#connector(),
      keepAliveTimeout: this.#idleMs ?? IDLE_MS,
      ...(this.#idleMs !== undefined && { keepAliveMaxTimeout: this.#idleMs }),
      bodyTimeout: bodyMs,
      maxHeaderSize: MAX_HEADER_BYTES,
    })
    const free = (): void => {
      if (pool === this.#pool) this.#serve()
    }
    // After a failure to connect, undici opens another connection only when it is asked for one.
    pool.on('drain', free).on('connectionError', free)
    this.#replacePoolAt = standstill.now() + maxConnectionMs
    return pool
  }

  /**
   * Moves new requests to new connections. Without this, a connection in constant use would stay at an address that DNS
   * no longer returns. Requests that are under way or queued are not affected. (undici's clientTtl option would check
   * every connection for every request.)
   */
  #replacePool(): void {
    const old = this.#pool
    this.#pool = this.#createPool()
    this.#serve()
    this.#retired.add(old)
    const forget = (): void => void this.#retired.delete(old)
    old.close().then(forget, forget)
  }

  /**
   * Whether this process stood still since the last request. Idle connections may be too old then: the monotonic clock, by which
   * undici tells their age, does not go on while the machine is suspended.
   */
  #mayHoldStale(): boolean {
    const standstills = this.#standstills
    this.#standstills = standstill.count
    return this.#standstills !== standstills
  }

  /** Connects like undici, but learns of a connection's failure before undici does. */
  #connector(): buildConnector.connector {
    const resets = this.#budgetClass === 'orders'
    const connect = readingHeads(connector('api', { timeoutMs: this.#config.connectMs, resets }))
    const open: buildConnector.connector = (options, callback) =>
      connect(options, (...result) => {
        const [, socket] = result
        socket?.on('error', (error) => {
          // A response without a length ends with its connection; undici would mistake a reset for its regular end.
          this.#hasFailingConnection = true
          if (socket.bytesRead > 0) noteUsed(error)
          process.nextTick(() => (this.#hasFailingConnection = false))
          // The peer closes the connection after a TLS alert; undici would report the close as the cause.
          socket.destroy(error)
        })
        callback(...result)
      })
    // The connection outlives the request for which it is opened, and serves others.
    return (...connection) => untraced(() => open(...connection))
  }

  /** Has undici write the requests that wait, for as long as there are free connections. */
  #serve(): void {
    this.#isFull = false
    for (const write of this.#line) {
      if (this.#isFull) return
      this.#line.delete(write)
      write()
    }
  }

  #dispatch(request: RestRequest, exchange: Forwarding | BufferedExchange, span: Span): void {
    const { body } = request
    if (this.#running > this.#connections + MAX_WAITING) {
      discard(body)
      return exchange.onResponseError(undefined, new Error('too many requests are waiting for upstream'))
    }
    if (this.#mayHoldStale() || standstill.lookedAt >= this.#replacePoolAt) this.#replacePool()
    if (!this.#isFull) return this.#write(request, exchange, span)
    const write = AsyncResource.bind(() => this.#write(request, exchange, span))
    this.#line.add(write)
    exchange.limitQueueing(this.#config.connectMs, body, () => this.#line.delete(write))
  }

  #write(
    { method, path, headers, body, timeoutMs }: RestRequest,
    exchange: Forwarding | BufferedExchange,
    span: Span,
  ): void {
    try {
      const hasFreeConnection = this.#pool.dispatch(
        {
          path: this.#basePath + path,
          method,
          headers: span.carry(headers) as string[],
          body,
          headersTimeout: (timeoutMs ?? this.#config.headersMs) + (method === 'GET' ? 0 : BACKSTOP_MS),
        },
        exchange,
      )
      this.#isFull = !hasFreeConnection
    } catch (error) {
      discard(body)
      exchange.onResponseError(undefined, error as Error)
    }
  }
}
