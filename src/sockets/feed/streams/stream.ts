import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../../../config/config.ts'
import { logFailure } from '../../../telemetry/failure-log.ts'
import type { FeedMetrics } from '../../../telemetry/feed-metrics.ts'
import { CLOSE } from '../../close-codes.ts'
import { type FeedRequest, type UpstreamMessage, frameOf } from '../wire/index.ts'
import { PATIENCE_MS, type Carried, type StreamLink, type StreamPool } from '../upstream/index.ts'
import type { AnswerContext } from './shared-answer.ts'
import type { StreamSpec, SubscribedStream, Subscription } from './subscription.ts'

/** The refusal that passes by itself, and is the same for everybody. */
const MARKET_IS_CLOSED = 'MarketIsClosed'
/** How often a stream moves to another connection because upstream has it on this one already. After that the browsers are told. */
const MAX_MOVES = 2
/** How long other requests for a stream wait for the answer to the one that upstream has got. */
const ANSWER_MS = 10_000
/** How long a stream without subscriptions waits for its first message. If that comes later, upstream is told to forget it. */
const UNANSWERED_MS = 60_000

/** What streams work with. */
export interface StreamContext extends AnswerContext {
  readonly feedMetrics: FeedMetrics
  readonly log: FastifyBaseLogger
  readonly pool: StreamPool
  readonly limits: Pick<Config['feed'], 'cacheMs' | 'lingerMs' | 'maxSubscriptions' | 'reconnectSpreadMs'>
  /** The stream is over, and no browser has it. */
  ended(stream: Stream): void
  /** Upstream has refused a stream because its market is closed. */
  marketClosed(spec: StreamSpec, message: UpstreamMessage): void
}

/** The subscriptions of a stream, and what each gets of the stream's messages. */
export interface Delivery {
  /** The request that upstream gets. */
  write(reqId: number): Buffer | string
  join(subscription: Subscription, request: FeedRequest): void
  leave(subscription: Subscription): void
  /** Takes a message that is no error. @param isFirst whether it is the first since upstream was asked */
  take(message: UpstreamMessage, isFirst: boolean): void
  /** Lets go of the subscriptions that will get no more. @param isOfRequest only of those whose request upstream has got */
  detach(isOfRequest: boolean): readonly Subscription[]
  /**
   * Puts the request of another subscription in the place of the one that upstream has refused. Absent where all have the same.
   * @returns false if there is none
   */
  replace?(): boolean
  /** The same for one that upstream does not answer. Whoever has asked for it waits on. */
  overtake?(): boolean
}

/**
 * One upstream subscription and the browsers that share it. It begins with the first of them and ends some time after the last:
 *
 * | Phase | The stream | Without browsers | Next phase |
 * | --- | --- | --- | --- |
 * | `unasked` | waits for its connection | ends; after a loss, once its browsers have had time to come back | `asked` |
 * | `asked` | waits for its first message | ends after a minute | `live`; `over` if refused |
 * | `live` | is sent by upstream | lingers, and gives way to other streams | `over` if upstream ends it |
 * | `over` | takes no browser | | |
 *
 * It becomes `unasked` again when its connection is lost, when it moves to another one, when upstream limits renewals, and when
 * another request takes the place of one that is refused or not answered.
 */
export class Stream implements Carried, SubscribedStream {
  readonly spec: StreamSpec
  phase: Carried['phase'] = 'unasked'
  id: string | undefined
  link: StreamLink | undefined
  unusedSince: number | undefined
  readonly #context: StreamContext
  readonly #delivery: Delivery
  #reqId: number | undefined
  /** When upstream was asked for it, in ms of the monotonic clock. */
  #askedAt = 0
  #size = 0
  #wasLive = false
  /** Until when it waits for browsers while it has none, in ms of the monotonic clock. */
  #wantedUntil = 0
  /** Whether no browser has joined since it was lost. */
  #isLost = false
  #moves = 0
  #timer: NodeJS.Timeout | undefined

  constructor(spec: StreamSpec, context: StreamContext, delivery: Delivery) {
    this.spec = spec
    this.#context = context
    this.#delivery = delivery
  }

  /** How many subscriptions browsers have. */
  get size(): number {
    return this.#size
  }

  write(reqId: number): Buffer | string {
    return this.#delivery.write(reqId)
  }

  join(subscription: Subscription, request: FeedRequest): void {
    this.#size++
    this.#isLost = false
    this.#stay()
    this.#delivery.join(subscription, request)
    if (this.phase === 'unasked') this.link?.awaited()
  }

  leave(subscription: Subscription): void {
    if (!subscription.isAttached) return
    subscription.isAttached = false
    this.#delivery.leave(subscription)
    if (--this.#size > 0) return
    const now = performance.now()
    this.#wantedUntil = Math.max(this.#wantedUntil, now + this.#context.limits.lingerMs)
    this.#unused(now)
  }

  asked(reqId: number): void {
    this.#reqId = reqId
    this.#askedAt = performance.now()
    this.#become('asked')
  }

  received(message: UpstreamMessage): void {
    if (message.errorCode !== undefined) return this.#refused(message)
    this.id = message.subscriptionId ?? this.id
    if (this.phase !== 'asked') return this.#delivery.take(message, false)
    this.#wasLive = true
    this.#moves = 0
    this.#become('live')
    this.#delivery.take(message, true)
    this.link?.answered(this)
  }

  /** Upstream may leave one request without an answer, for which those who have asked for something else do not wait for ever. */
  beat(): void {
    const isOverdue = this.phase === 'asked' && performance.now() - this.#askedAt >= ANSWER_MS
    if (isOverdue && this.#delivery.overtake?.() === true) this.#askAgain()
  }

  /** Closes the browsers that would get the message. Upstream may have begun the stream, so it is forgotten there. */
  tooBig({ subscriptionId }: UpstreamMessage): void {
    this.id = subscriptionId ?? this.id
    this.#refuse(({ browser }) => browser.end(CLOSE.tooBig), this.phase === 'asked')
  }

  /** The browsers that have it may have missed something, or have waited in vain. */
  lost(): void {
    // A wait that has begun goes on: others on the connection may wait in vain again and again.
    if (this.phase === 'unasked' && this.#size === 0) return
    if (this.phase !== 'unasked') {
      // Upstream has forgotten it.
      this.#reqId = undefined
      const { reconnectSpreadMs, lingerMs } = this.#context.limits
      // Once, however often upstream is lost for nobody.
      if (!this.#isLost) this.#wantedUntil = performance.now() + reconnectSpreadMs + PATIENCE_MS + lingerMs
      this.#isLost = true
      this.#stay()
      this.#become('unasked')
    }
    for (const subscription of this.#delivery.detach(false)) {
      subscription.isAttached = false
      this.link?.outage.depart(subscription.browser)
    }
    this.#size = 0
    this.#unused()
  }

  /** Ends the stream here and, where it has been taken, upstream. */
  end(): void {
    if (this.phase === 'over') return
    this.#become('over')
    this.#stay()
    this.#context.ended(this)
    this.link?.leave(this)
  }

  /** The only way from one phase to another. */
  #become(phase: Carried['phase']): void {
    this.phase = phase
    if (phase === 'unasked' || phase === 'over') {
      if (this.#reqId !== undefined) this.link?.forget(this.#reqId, this.id)
      this.#reqId = undefined
      this.id = undefined
    }
    if (this.#size === 0) this.#unused()
  }

  /** No browser has it: how long it waits for one depends on the phase. */
  #unused(now = performance.now()): void {
    switch (this.phase) {
      case 'unasked':
        // Not for ever: upstream may stay away, and would then be tried, and asked at its return, for nobody.
        if (this.#wasLive) this.#endAfter(this.#wantedUntil - now)
        else this.end()
        break
      case 'asked':
        this.#endAfter(UNANSWERED_MS)
        break
      case 'live':
        this.unusedSince = now
        this.#endAfter(this.#wantedUntil - now)
        break
      case 'over':
    }
  }

  #refused(message: UpstreamMessage): void {
    const { errorCode, subscription: part, body } = message
    const isRateLimit = errorCode === 'RateLimit'
    if (isRateLimit) this.#context.fairShare.refused()
    if (this.phase === 'asked' && isRateLimit && this.#wasLive) return this.#retryLater()
    if (this.phase === 'asked' && errorCode === 'AlreadySubscribed' && this.#moved()) return
    const isClosed = this.phase === 'asked' && errorCode === MARKET_IS_CLOSED
    if (isClosed) this.#context.marketClosed(this.spec, message)
    this.#refuse((each) => each.fail(frameOf(each.prefix, part, body)), this.phase === 'asked' && !isClosed)
  }

  /** Upstream sends no more. @param isOfRequest whether that concerns only those with this request; others may have another one */
  #refuse(tell: (subscription: Subscription) => void, isOfRequest: boolean): void {
    for (const each of this.#delivery.detach(isOfRequest)) tell(each)
    if (this.#delivery.replace?.() !== true) return this.end()
    this.#askAgain()
  }

  /** Asks upstream with the request that has taken the place of another one. */
  #askAgain(): void {
    this.#become('unasked')
    this.link?.leave(this)
    this.link?.add(this)
  }

  #retryLater(): void {
    const { log, feedMetrics, limits } = this.#context
    logFailure(log, 'upstream refused to renew a subscription of the feed')
    feedMetrics.refused.inc()
    if (this.#size === 0 && performance.now() > this.#wantedUntil - limits.lingerMs) return this.end()
    this.#become('unasked')
    this.link?.refused(this)
  }

  /** Leaves a connection where another stream is in the way. (A browser that subscribes twice is refused here, not by upstream.) */
  #moved(): boolean {
    if (this.#size === 0 || this.#moves++ >= MAX_MOVES) return false
    const from = this.link
    this.#become('unasked')
    from?.leave(this)
    return this.#context.pool.place(this, from)
  }

  /** Ends the stream unless a browser joins before. */
  #endAfter(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.end(), Math.max(Math.round(ms), 0)).unref()
  }

  /** Cancels {@link #endAfter}, since a browser has joined. */
  #stay(): void {
    clearTimeout(this.#timer)
    this.unusedSince = undefined
  }
}
