import { AnswerFrame, type FeedRequest, type UpstreamMessage, frameOf, rateLimitError } from '../wire/index.ts'
import { Position, RecentMessages, pointOf, tailOf } from '../history/index.ts'
import { Audience } from './audience.ts'
import { SharedAnswer } from './shared-answer.ts'
import type { Delivery, StreamContext } from './stream.ts'
import type { StreamSpec, Subscription } from './subscription.ts'

/** Longest time for which a history is kept, together with the messages that follow it. */
const HISTORY_MS = 1000

type History = SharedAnswer<Subscription>

/**
 * `ticks_history` with `subscribe`. The first browser's request starts the stream. A later subscriber gets a history as it has
 * asked for it, fetched on another connection, and then exactly the later messages of the stream.
 */
export class HistoryDelivery implements Delivery {
  /** The stream's messages are kept as long for a history that is on its way. */
  readonly staleMs = 30_000
  readonly #context: StreamContext
  readonly #audience: Audience
  /** The request that upstream gets. */
  #first: FeedRequest
  /** The subscriptions that wait for the stream to begin. */
  readonly #waiting = new Map<Subscription, FeedRequest>()
  /** Those among them whose request upstream has not answered in time. */
  readonly #overtaken = new WeakSet<Subscription>()
  /** Histories that are on their way, ahead of the stream, or kept. Those who wait for one get no message of the stream yet. */
  readonly #histories = new Map<History, Position>()
  #recent = new RecentMessages()
  /** The member `subscription` of the stream's messages. Undefined before its history. */
  #subscription: Buffer | undefined

  constructor({ identity }: StreamSpec, request: FeedRequest, context: StreamContext) {
    this.#first = request
    this.#context = context
    this.#audience = new Audience(identity)
  }

  write(reqId: number): Buffer {
    return this.#first.toUpstream(reqId)
  }

  join(subscription: Subscription, request: FeedRequest): void {
    if (this.#subscription === undefined) this.#waiting.set(subscription, request)
    else this.#give(subscription, request)
  }

  leave(subscription: Subscription): void {
    this.#audience.remove(subscription)
    this.#waiting.delete(subscription)
    for (const history of this.#histories.keys()) {
      history.waiting.delete(subscription)
      this.letGo(history)
    }
  }

  take(message: UpstreamMessage, isFirst: boolean): void {
    const point = pointOf(message)
    if (this.#subscription === undefined && point === undefined) return this.#begin(message, isFirst)
    this.#recent.add(point, message, this.#oldestNeeded)
    this.#audience.deliver(message)
    for (const [history, position] of this.#histories) if (position.seek()) this.#follow(history, position)
  }

  detach(isOfRequest: boolean): Subscription[] {
    const concerned = [...this.#waiting].filter(([, { key }]) => !isOfRequest || key === this.#first.key)
    const waiting = concerned.map(([subscription]) => subscription)
    for (const subscription of waiting) this.#waiting.delete(subscription)
    if (isOfRequest) return waiting
    const others = Array.from(this.#histories.keys(), (history) => history.takeWaiting())
    this.#histories.clear()
    this.#recent = new RecentMessages()
    this.#subscription = undefined
    return [waiting, ...others, this.#audience.clear()].flat()
  }

  /** Those who still wait have asked for something else, which upstream may take. */
  replace(): boolean {
    for (const [subscription, request] of this.#waiting) {
      if (this.#context.fairShare.admits(subscription.browser)) {
        this.#first = request
        return true
      }
      this.#waiting.delete(subscription)
      subscription.fail(rateLimitError(request))
    }
    return false
  }

  overtake(): boolean {
    const { key: unanswered } = this.#first
    for (const [subscription, { key }] of this.#waiting) if (key === unanswered) this.#overtaken.add(subscription)
    // Each has its turn once, or an upstream that is slow would never be waited for.
    const overtaken = [...this.#waiting].filter(([subscription]) => this.#overtaken.has(subscription))
    for (const [subscription] of overtaken) this.#waiting.delete(subscription)
    const isReplaced = this.replace()
    for (const [subscription, request] of overtaken) this.#waiting.set(subscription, request)
    return isReplaced
  }

  answered(history: History, message: UpstreamMessage): void {
    const position = this.#histories.get(history)
    // It belongs to the time before the stream was lost.
    if (position === undefined) return
    this.#histories.delete(history)
    const { errorCode, body } = message
    if (position.isCovered && errorCode === undefined) return this.#came(history, position, message)
    for (const subscription of history.takeWaiting()) {
      if (position.isCovered) subscription.fail(frameOf(subscription.prefix, body))
      else this.#give(subscription, history.request)
    }
  }

  lost(subscription: Subscription): void {
    subscription.stream.leave(subscription)
  }

  /** Lets go of a history that no browser has or will be given, also while it is ahead: the stream may be silent for days. */
  letGo(history: History): void {
    if (!history.isUsed) this.#histories.delete(history)
  }

  /** The number of the oldest message that may still follow a history. */
  get #oldestNeeded(): number {
    let oldest = Infinity
    for (const [{ isStale }, { at }] of this.#histories) if (!isStale) oldest = Math.min(oldest, at)
    return oldest
  }

  /** Takes upstream's answer to the request of the stream. */
  #begin(message: UpstreamMessage, isFirst: boolean): void {
    const first = this.#first
    const asking = [...this.#waiting]
    this.#waiting.clear()
    this.#subscription = message.subscription
    const history = this.#historyOf(first)
    for (const [subscription, { key }] of asking) if (key === first.key) history.waiting.add(subscription)
    const position = new Position(this.#recent, first, 0)
    // A history with an end of its own does not reach up to the stream.
    if (position.isLatest) this.#recent.begin(tailOf(message))
    // The messages that upstream has sent before it may be later all the same.
    if (isFirst) position.locate(this.#recent.end)
    this.#came(history, position, message)
    for (const [subscription, request] of asking) if (request.key !== first.key) this.#give(subscription, request)
  }

  /** Gives a history to a subscription that joins the living stream. */
  #give(subscription: Subscription, request: FeedRequest): void {
    const { feedMetrics, fairShare } = this.#context
    const { operation, key } = request
    const known = [...this.#histories].find(([each]) => each.isShared && each.request.key === key)
    if (known !== undefined) feedMetrics.hit(operation)
    // The request may be an equal one of another browser, whose answers begin otherwise.
    else if (!fairShare.admits(subscription.browser))
      return subscription.fail(rateLimitError({ operation, prefix: subscription.prefix }))
    this.#serve(subscription, ...(known ?? this.#fetch(request)))
  }

  #fetch(request: FeedRequest): readonly [History, Position] {
    const [history, position] = [this.#historyOf(request), new Position(this.#recent, request)]
    this.#histories.set(history, position)
    history.ask((reqId) => request.toUpstreamOnce(reqId))
    return [history, position]
  }

  /** A history has come. While it is ahead of the stream, its subscriptions get no message. */
  #came(history: History, position: Position, message: UpstreamMessage): void {
    const waiting = history.takeWaiting()
    history.take(new AnswerFrame(message, this.#subscription))
    position.came(tailOf(message))
    position.seek()
    this.#histories.set(history, position)
    for (const subscription of waiting) this.#serve(subscription, history, position)
    history.keep()
  }

  /** The stream has reached the end of a history. */
  #follow(history: History, position: Position): void {
    for (const subscription of history.takeWaiting()) this.#join(subscription, position)
    this.letGo(history)
  }

  /** Gives a subscription a history and what follows it, as far as they are there. */
  #serve(subscription: Subscription, history: History, position: Position): void {
    const isThere = history.send(subscription)
    if (position.isKnown) this.#join(subscription, position)
    else history.waiting.add(subscription)
    if (isThere) subscription.served()
  }

  /** Sends a subscription the messages that follow its history, and has it get all later ones. */
  #join(subscription: Subscription, { messages }: Position): void {
    const { browser, prefix, identity } = subscription
    for (const { subscription: part, body } of messages) browser.outbox.deliver(frameOf(prefix, part, body), identity)
    this.#audience.add(subscription)
  }

  #historyOf(request: FeedRequest): History {
    const keepMs = Math.min(this.#context.limits.cacheMs, HISTORY_MS)
    return new SharedAnswer(request, keepMs, this.#context, this)
  }
}
