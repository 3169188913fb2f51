import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../../config/config.ts'
import { createFeedMetrics } from '../../telemetry/feed-metrics.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { CLOSE, type CloseStatus } from '../close-codes.ts'
import type { SocketRegistry } from '../registry.ts'
import type { OpenSocket } from '../socket-end.ts'
import { operationOf } from '../operations.ts'
import { PUBLIC_SOCKET_PATH } from '../upstream-socket.ts'
import { FairShare, type ConnectionDependencies, OneShots, StreamPool } from './upstream/index.ts'
import { type FeedRequest, RequestReader, WriteBatch, localAnswer, prefixOf, rateLimitError } from './wire/index.ts'
import { CacheQuota, Reads, Streams, Subscriber, forgetAll, isKnownForgetAll } from './streams/index.ts'
import { Member, type MemberHost, OwnSocket } from './browser/index.ts'
import { serviceOf } from './services.ts'

/** What the feed works with. */
interface FeedDependencies {
  readonly config: Pick<Config, 'relay' | 'feed'>
  readonly metrics: Metrics
  readonly log: FastifyBaseLogger
  readonly registry: Pick<SocketRegistry, 'waiting'>
}

/** Longest time for which an answer that changes with every tick is kept. */
const BRIEF_MS = 250

/** The shared market data of a process. It passes each message of a browser to what serves it. */
export class Feed implements MemberHost {
  readonly limits: Config['relay'] & Config['feed']
  readonly batch = new WriteBatch()
  readonly traffic: MemberHost['traffic']
  readonly conflated: MemberHost['conflated']
  readonly waiting: SocketRegistry['waiting']
  readonly #deps: FeedDependencies
  readonly #url: string
  readonly #requests = new RequestReader()
  #members = 0
  readonly #oneShots: OneShots
  readonly #reads: Reads
  readonly #pool: StreamPool
  readonly #streams: Streams
  #ownSockets = 0

  constructor(deps: FeedDependencies) {
    const { config, metrics, log, registry } = deps
    this.#deps = deps
    this.waiting = registry.waiting
    const limits = { ...config.relay, ...config.feed }
    this.limits = limits
    this.traffic = metrics.relayTraffic.to_browser
    const feedMetrics = createFeedMetrics(metrics.registry)
    this.conflated = feedMetrics.conflated
    this.#url = limits.wsUrl + PUBLIC_SOCKET_PATH
    const { batch } = this
    const { maxUpstreamMessageBytes: maxMessageBytes, reconnectSpreadMs } = limits
    const connection: ConnectionDependencies = { url: this.#url, maxMessageBytes, batch, log, metrics: feedMetrics }
    const fairShare = new FairShare(limits.requestsPerMinute, limits.maxSubscriptions)
    this.#oneShots = new OneShots(connection, reconnectSpreadMs, () => this.#members > 0)
    const answers = { oneShots: this.#oneShots, fairShare, kept: new CacheQuota() }
    this.#reads = new Reads(answers, feedMetrics)
    this.#pool = new StreamPool(connection, limits)
    this.#streams = new Streams({ ...answers, feedMetrics, log, pool: this.#pool, limits })
    Object.assign(feedMetrics.counts, {
      upstreamSockets: () => this.#pool.openSockets + Number(this.#oneShots.connection.isOpen),
      retryingSockets: () => this.#pool.retryingSockets + Number(this.#oneShots.connection.isRetrying),
      streams: () => this.#streams.size,
      subscribers: () => this.#streams.subscribers,
      ownSockets: () => this.#ownSockets,
      takenPlaces: () => this.#pool.takenPlaces,
      places: () => this.#pool.places,
      ownSocketLimit: () => limits.maxOwnSockets,
    })
  }

  /** Takes a browser in. @param onEnd called once */
  join(browser: OpenSocket, address: string, onEnd: (close: CloseStatus) => void): Member {
    const member: Member = new Member(browser, address, this, {
      message: (message, isBinary) => this.#received(member, subscriber, message, isBinary),
      end: (close) => {
        subscriber.leave()
        this.#members--
        onEnd(close)
      },
    })
    const subscriber = new Subscriber(member)
    this.#members++
    return member
  }

  /** Ends all upstream connections. The browsers must be gone. */
  end(): void {
    this.#oneShots.end()
    this.#pool.end()
  }

  #received(member: Member, subscriber: Subscriber, message: Buffer, isBinary: boolean): void {
    try {
      this.#serve(member, subscriber, message, isBinary)
    } catch (error) {
      this.#deps.log.error({ err: error }, 'a message of a browser could not be handled')
      member.end(CLOSE.ourFault)
    }
  }

  #serve(member: Member, subscriber: Subscriber, message: Buffer, isBinary: boolean): void {
    const request = isBinary ? undefined : this.#requests.read(message)
    if (!isBinary) this.#deps.metrics.countRelayOperation(request?.operation ?? operationOf(message))
    if (request === undefined) return this.#pass(member, message, isBinary)
    const { cacheMs } = this.limits
    switch (serviceOf(request)) {
      case 'ticks':
        return this.#streams.subscribeToTicks(subscriber, request)
      case 'history':
        return this.#streams.subscribeToHistory(subscriber, request)
      case 'kept':
        return this.#reads.share(member, request, cacheMs)
      case 'brief':
        return this.#reads.share(member, request, Math.min(cacheMs, BRIEF_MS))
      case 'single':
        return this.#reads.single(member, request)
      case 'ping':
        return this.#ping(member, subscriber, request, message)
      case 'forget':
        return this.#forget(member, subscriber, request, message)
      case 'forget_all':
        return this.#forgetAll(member, subscriber, request)
      case 'own':
        return this.#pass(member, message, false)
    }
  }

  /**
   * Answers the `ping` of a browser, by which its page learns whether it would get what it waits for. While upstream is silent there, the
   * answer waits; a browser that may have missed something gets none.
   */
  #ping(member: Member, subscriber: Subscriber, request: FeedRequest, message: Buffer): void {
    if (member.isOver || member.hasMissed) return
    const silent = subscriber.silentConnection(this.#oneShots.connection)
    if (silent !== undefined) {
      const heard = member.awaits(request.memoryBytes)
      return silent.afterSilence(() => {
        heard()
        this.#ping(member, subscriber, request, message)
      })
    }
    // Upstream ends an own socket that sends nothing for long. The pings of the page prevent that.
    if (member.own !== undefined && member.spend()) member.own.send(message, false)
    else member.outbox.answer(localAnswer(request, 'pong'))
  }

  #forget(member: Member, subscriber: Subscriber, request: FeedRequest, message: Buffer): void {
    if (subscriber.forget(request.fields.get('forget'))) member.outbox.answer(localAnswer(request, 1))
    else if (member.own !== undefined) this.#pass(member, message, false)
    else member.outbox.answer(localAnswer(request, 0))
  }

  #forgetAll(member: Member, subscriber: Subscriber, request: FeedRequest): void {
    if (member.own === undefined && isKnownForgetAll(request)) return forgetAll(subscriber, request, undefined)
    const own = this.#ownFor(member)
    if (own === undefined) return member.outbox.answer(rateLimitError(request))
    forgetAll(subscriber, request, (answered) => own.ask((reqId) => request.toUpstream(reqId), answered))
  }

  /** Sends a message on the browser's own upstream socket, and counts it as a request. Beyond a limit it is refused. */
  #pass(member: Member, message: Buffer, isBinary: boolean): void {
    const own = this.#ownFor(member)
    if (own !== undefined) return own.send(message, isBinary)
    const operation = isBinary ? 'other' : operationOf(message)
    member.outbox.answer(rateLimitError({ operation, prefix: prefixOf(message) }))
  }

  /** The browser's own upstream socket, which is opened if it has none, for one more request. Undefined beyond a limit. */
  #ownFor(member: Member): OwnSocket | undefined {
    if (member.own === undefined && this.#ownSockets >= this.limits.maxOwnSockets) return undefined
    return member.spend() ? (member.own ??= this.#openOwn(member)) : undefined
  }

  #openOwn(member: Member): OwnSocket {
    const { maxBufferedBytes, maxUpstreamMessageBytes: maxMessageBytes } = this.limits
    const { metrics, log } = this.#deps
    this.#ownSockets++
    return new OwnSocket(member, {
      url: this.#url,
      maxMessageBytes,
      maxBufferedBytes,
      waiting: this.waiting,
      log,
      traffic: metrics.relayTraffic.to_upstream,
      onEnd: () => this.#ownSockets--,
    })
  }
}
