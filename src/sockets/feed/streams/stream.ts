import type { FastifyBaseLogger } from 'fastify'
import { logFailure } from '../../../telemetry/failure-log.ts'
import type { FeedMetrics } from '../../../telemetry/feed-metrics.ts'
import { CLOSE } from '../../close-codes.ts'
import { type FeedRequest, type UpstreamMessage, frameOf } from '../wire/index.ts'
import type { Carried, FairShare, OneShots, StreamLink, StreamPool } from '../upstream/index.ts'
import { Audience } from './audience.ts'
import type { CacheQuota } from './reads.ts'
import type { SubscribedStream, Subscription } from './subscription.ts'

/** What makes a stream the stream that it is. */
export interface StreamSpec {
  /** Equal for equal streams. */
  readonly identity: string
  /** What `forget_all` calls it. */
  readonly type: 'ticks' | 'candles'
  readonly symbol: string
  /** The network of the browser that was the first to ask for it. */
  readonly startedBy: string
}

/** Tells a browser what becomes of its subscription. @param prefix what its messages begin with */
export type Tell = (subscription: Subscription, prefix: Buffer) => void

/** How often a stream moves to another connection because upstream has it on this one already. After that the browsers are told. */
const MAX_MOVES = 2
/** How long a stream without subscriptions waits for its first message. If that comes later, upstream is told to forget it. */
const UNANSWERED_MS = 60_000

/** What streams work with. */
export interface StreamContext {
  readonly feedMetrics: FeedMetrics
  readonly log: FastifyBaseLogger
  readonly pool: StreamPool
  readonly oneShots: OneShots
  readonly share: FairShare
  /** How long a stream without subscribers is kept. */
  readonly lingerMs: number
  /** How long browsers take to come back after a connection was lost. */
  readonly returnMs: number
  readonly kept: CacheQuota
  /** How long a history may be given to others. */
  readonly historyMs: number
  /** The stream is over, and no browser has it. */
  ended(stream: Stream): void
}

/** One upstream subscription and the browsers that share it. */
export abstract class Stream implements Carried, SubscribedStream {
  readonly identity: string
  readonly type: StreamSpec['type']
  readonly spec: StreamSpec
  /**
   * `unasked`: waits for a connection. `asked`: waits for its first message. `live`: upstream sends messages. `over`: no
   * browser may join any more. It becomes `unasked` again when its connection is lost ({@link lost}), when it moves to another
   * one, when upstream limits renewals, and when another request takes the place of a refused one. `end` makes it `over`.
   */
  state: 'unasked' | 'asked' | 'live' | 'over' = 'unasked'
  /** The id that upstream has given its subscription. */
  id: string | undefined
  link: StreamLink | undefined
  unusedSince: number | undefined
  protected readonly context: StreamContext
  /** The subscriptions that get every message. */
  protected readonly audience: Audience
  #reqId: number | undefined
  #size = 0
  #wasLive = false
  /** Until when browsers may come back after a loss, in ms of the monotonic clock. */
  #returnsUntil = 0
  #moves = 0
  #linger: NodeJS.Timeout | undefined

  constructor(spec: StreamSpec, context: StreamContext) {
    this.identity = spec.identity
    this.type = spec.type
    this.spec = spec
    this.context = context
    this.audience = new Audience(spec.identity)
  }

  /** How many subscriptions browsers have. */
  get size(): number {
    return this.#size
  }

  /** The request that upstream gets. */
  abstract write(reqId: number): Buffer | string
  /** Takes a new subscription. */
  protected abstract joined(subscription: Subscription, request: FeedRequest): void
  /** Lets go of a subscription that is not in the audience. */
  protected abstract left(subscription: Subscription): void
  /** Takes a message that is no error. @param isFirst whether it is the first since upstream was asked */
  protected abstract took(message: UpstreamMessage, isFirst: boolean): void
  /**
   * Tells the subscriptions that will get no more of the stream, and lets go of them.
   * @param isOfRequest whether only those are concerned whose request upstream has got
   * @returns whether the stream goes on for others, with a request of theirs
   */
  protected abstract refused(isOfRequest: boolean, tell: Tell): boolean
  /** Takes all subscriptions out of the stream. @returns these */
  protected abstract detachAll(): Iterable<Subscription>

  join(subscription: Subscription, request: FeedRequest): void {
    this.#size++
    this.#stay()
    this.joined(subscription, request)
    if (this.state === 'unasked') this.link?.awaited()
  }

  leave(subscription: Subscription): void {
    if (!subscription.isAttached) return
    subscription.isAttached = false
    this.audience.remove(subscription)
    this.left(subscription)
    if (--this.#size > 0) return
    if (this.state === 'live') this.#lingers()
    else if (this.state === 'asked') this.#endAfter(UNANSWERED_MS)
    else if (this.state === 'unasked' && !this.#wasLive) this.end()
  }

  /** Notes that upstream has been asked. */
  asked(reqId: number): void {
    this.#reqId = reqId
    this.state = 'asked'
    if (this.#size === 0) this.#endAfter(UNANSWERED_MS)
  }

  received(message: UpstreamMessage): void {
    if (message.errorCode !== undefined) return this.#refused(message)
    const isFirst = this.state === 'asked'
    this.state = 'live'
    this.#wasLive = true
    this.#moves = 0
    this.id = message.subscriptionId ?? this.id
    this.took(message, isFirst)
    if (!isFirst) return
    this.link?.answered(this)
    if (this.#size === 0) this.#lingers()
  }

  /** Closes the browsers that would get the message. Upstream may have begun the stream, so it is forgotten there. */
  tooBig({ subscriptionId }: UpstreamMessage): void {
    this.id = subscriptionId ?? this.id
    this.#endFor(this.state === 'asked', ({ browser }) => browser.end(CLOSE.tooBig))
  }

  lost(): void {
    // Upstream has forgotten it.
    this.#reqId = undefined
    this.#unask()
    this.#returnsUntil = performance.now() + this.context.returnMs
    this.#stay()
    this.giveUp()
  }

  /** Closes the browsers that wait for this stream or have missed something. */
  giveUp(): void {
    for (const subscription of this.detachAll()) {
      subscription.isAttached = false
      this.link?.depart(subscription.browser)
    }
    this.#size = 0
    if (!this.#wasLive) this.end()
  }

  /** Ends the stream here and, where it has been taken, upstream. */
  end(): void {
    if (this.state === 'over') return
    this.#unask()
    this.state = 'over'
    this.#stay()
    this.context.ended(this)
    this.link?.remove(this)
  }

  /** Answers a subscription with an error, and ends it. */
  protected fail(subscription: Subscription, error: Buffer): void {
    const { browser, list } = subscription
    if (!subscription.isAttached) return
    if (list?.isOver === false) return list.refused(error)
    browser.sendConflated(this.identity)
    browser.answer(error)
    subscription.failed()
  }

  /** Subscribes again, with another request. */
  protected restart(): void {
    this.#unask()
    this.link?.remove(this)
    this.link?.add(this)
  }

  #refused(message: UpstreamMessage): void {
    if (message.errorCode === 'RateLimit') this.context.share.refused()
    if (this.state === 'asked' && message.errorCode === 'RateLimit' && this.#wasLive) return this.#retryLater()
    if (this.state === 'asked' && message.errorCode === 'AlreadySubscribed' && this.#moved()) return
    const { subscription: part, body } = message
    this.#endFor(this.state === 'asked', (each, prefix) => this.fail(each, frameOf(prefix, part, body)))
  }

  #endFor(isOfRequest: boolean, tell: Tell): void {
    if (!this.refused(isOfRequest, tell)) this.end()
  }

  #retryLater(): void {
    const { log, feedMetrics } = this.context
    logFailure(log, 'upstream refused to renew a subscription of the feed')
    feedMetrics.refused.inc()
    if (this.#size === 0 && performance.now() > this.#returnsUntil) return this.end()
    this.#unask()
    this.link?.refused(this)
  }

  /** Leaves a connection where another stream is in the way. (A browser that subscribes twice is refused here, not by upstream.) */
  #moved(): boolean {
    if (this.#size === 0 || this.#moves++ >= MAX_MOVES) return false
    const from = this.link
    this.#unask()
    from?.remove(this)
    return this.context.pool.place(this, from)
  }

  /** Lets go of what upstream was asked for, if it was, so that it can be asked again. */
  #unask(): void {
    if (this.#reqId !== undefined) this.link?.forget(this.#reqId, this.id)
    this.#reqId = undefined
    this.id = undefined
    this.state = 'unasked'
  }

  #lingers(): void {
    this.unusedSince = performance.now()
    this.#endAfter(this.context.lingerMs + Math.max(this.#returnsUntil - performance.now(), 0))
  }

  /** Ends the stream unless a browser joins before. */
  #endAfter(ms: number): void {
    clearTimeout(this.#linger)
    this.#linger = setTimeout(() => this.end(), ms).unref()
  }

  /** Cancels {@link #endAfter}, since a browser has joined. */
  #stay(): void {
    clearTimeout(this.#linger)
    this.unusedSince = undefined
  }
}
